/* Every operator's reference kernel and gradient against what PyTorch computes in float64: the file
   tests/golden/ops.txt, whose form tools/make_golden_ops.py describes. */
#include "op_subject.h"

static const char path[] = "tests/golden/ops.txt";
static const double allowed = 1e-9; /* on ||a - b|| / ||b||; both sides are doubles, the text has 13 digits */

struct golden { /* one case, as it is read */
    const struct cvy_op *op;
    void *attrs;
    int n_in;
    struct cvy_desc in[CVY_CASE_MAX];
    double *in_values[CVY_CASE_MAX];
    struct op_subject s;
    bool is_open, is_differentiated;
    size_t n_cases, n_compared, n_gradients;
    bool seen[128]; /* operators by their place in the table */
};

/* "NUMBER NUMBER …", exactly n of them. */
static double *parse_numbers(const char *text, int64_t n) {
    double *values = calloc((size_t)n + 1, sizeof *values);
    assert_non_null(values);
    for (int64_t k = 0; k < n; k++) {
        char *end;
        values[k] = strtod(text, &end);
        if (end == text)
            fail_msg("%s: %lld numbers expected, only %lld found", path, (long long)n, (long long)k);
        text = end;
    }
    assert_int_equal(strspn(text, " "), strlen(text));
    return values;
}

static void compare(struct golden *c, cvy_value v, const char *numbers, const char *what, int which) {
    int64_t n = interpret_count(c->s.g, v);
    double *expected = parse_numbers(numbers, n), difference = 0, norm = 0;
    const double *got = c->s.in.values[v];
    for (int64_t k = 0; k < n; k++) {
        difference += (got[k] - expected[k]) * (got[k] - expected[k]);
        norm += expected[k] * expected[k];
    }
    if (!(sqrt(difference) <= allowed * sqrt(norm) + 1e-14))
        fail_msg("case %zu, %s: %s %d is off by %.3g of %.3g", c->n_cases, c->op->name, what, which,
                 sqrt(difference), sqrt(norm));
    free(expected);
}

static void begin(struct golden *c, char *rest) {
    char *attrs = strchr(rest, ' ');
    assert_non_null(attrs);
    *attrs++ = '\0';
    c->op = cvy_op_find(rest);
    if (!c->op)
        fail_msg("%s: no operator %s", path, rest);
    assert_ok(cvy_alloc_items(1, c->op->attrs_size, &c->attrs));
    cvy_attrs_default(c->op, c->attrs);
    assert_ok(cvy_attrs_parse(c->op, attrs, c->attrs));
    c->n_in = 0;
    c->is_open = c->is_differentiated = false;
    c->n_cases++;
    size_t n, place = 0;
    const struct cvy_op *const *ops = cvy_op_table(&n);
    while (ops[place] != c->op)
        place++;
    assert_true(place < sizeof c->seen);
    c->seen[place] = true;
}

static void add_input(struct golden *c, char *rest) {
    char *numbers = rest + strcspn(rest, " ");
    if (*numbers)
        *numbers++ = '\0';
    assert_true(c->n_in < CVY_CASE_MAX);
    struct cvy_desc *desc = &c->in[c->n_in];
    assert_ok(cvy_desc_parse(rest, desc));
    bool is_absent = cvy_desc_is_absent(desc);
    c->in_values[c->n_in++] = is_absent ? NULL : parse_numbers(numbers, cvy_shape_count(&desc->shape));
}

/* All inputs are known: builds the graph, and with `gout` its gradient, and evaluates it. */
static void evaluate(struct golden *c, const char *gout) {
    if (c->is_open)
        op_subject_close(&c->s);
    op_subject_open(&c->s, c->op, c->attrs, c->in, c->n_in);
    if (gout)
        op_subject_differentiate(&c->s);
    const struct cvy_node *node = op_subject_node(&c->s);
    for (int i = 0; i < c->n_in; i++) {
        if (c->in_values[i])
            memcpy(interpret_value(&c->s.in, node->in[i]), c->in_values[i],
                   (size_t)cvy_shape_count(&c->in[i].shape) * sizeof(double));
    }
    if (gout) {
        double *values = parse_numbers(gout, interpret_count(c->s.g, c->s.gout));
        memcpy(interpret_value(&c->s.in, c->s.gout), values,
               (size_t)interpret_count(c->s.g, c->s.gout) * sizeof *values);
        free(values);
    }
    interpret_all(&c->s.in);
    c->is_open = true;
    c->is_differentiated = gout != NULL;
}

static void check(struct golden *c, const char *what, char *rest) {
    char *numbers;
    int which = (int)strtol(rest, &numbers, 10);
    bool is_gradient = strcmp(what, "gin") == 0;
    assert_true(numbers != rest && which >= 0);
    if (!is_gradient) {
        if (!c->is_open)
            evaluate(c, NULL);
        assert_true(which < op_subject_node(&c->s)->n_out);
        compare(c, op_subject_node(&c->s)->out[which], numbers, "result", which);
        c->n_compared++;
        return;
    }
    assert_true(c->is_differentiated && which < c->n_in);
    if (c->s.gin[which] == CVY_NONE)
        fail_msg("case %zu, %s: no gradient of input %d", c->n_cases, c->op->name, which);
    compare(c, c->s.gin[which], numbers, "gradient of input", which);
    c->n_gradients++;
}

static void end(struct golden *c) {
    if (c->is_open)
        op_subject_close(&c->s);
    for (int i = 0; i < c->n_in; i++)
        free(c->in_values[i]);
    free(c->attrs);
    c->attrs = NULL;
    c->n_in = 0;
    c->is_open = false;
}

static void read_line(struct golden *c, char *line) {
    char *rest = line + strcspn(line, " ");
    if (*rest)
        *rest++ = '\0';
    if (strcmp(line, "case") == 0) {
        end(c);
        begin(c, rest);
    } else if (strcmp(line, "in") == 0) {
        add_input(c, rest);
    } else if (strcmp(line, "gout") == 0) {
        evaluate(c, rest);
    } else if (strcmp(line, "out") == 0 || strcmp(line, "gin") == 0) {
        check(c, line, rest);
    } else if (*line && *line != '#') {
        fail_msg("%s: unknown line \"%s\"", path, line);
    }
}

static void kernels_agree_with_pytorch(void **state) {
    (void)state;
    struct golden c = {0};
    char *text, *line, *next;
    size_t n_bytes, n;
    assert_ok(cvy_read_file(path, 1 << 24, &text, &n_bytes));
    for (line = text; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        read_line(&c, line);
    }
    end(&c);
    free(text);
    print_message("%zu cases, %zu results, %zu gradients\n", c.n_cases, c.n_compared, c.n_gradients);
    assert_true(c.n_cases > 70 && c.n_gradients > 80);

    /* every operator has a case, or is the gradient of one that has */
    const struct cvy_op *const *ops = cvy_op_table(&n);
    for (size_t k = 0; k < n; k++) {
        if (!c.seen[k] && !strstr(ops[k]->name, "_backward"))
            fail_msg("%s has no case for %s", path, ops[k]->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_agree_with_pytorch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
