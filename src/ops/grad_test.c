/* Every operator's gradient against central differences of its own reference kernel in doubles, along random
   directions: with L(x) = sum of gout y(x), the slope (L(x + h v) - L(x - h v)) / 2h must be sum of gin v.
   Where private outputs (a mask, an index) differ at the two ends, a kink lies between: another direction. */
#include "op_subject.h"
#include "ops/infer.h"

enum { DIRECTIONS = 3, REDRAWS = 20 };
static const double h = 1e-6;

/* Floating inputs that are constants to a gradient. */
static bool is_constant(const char *name) {
    static const char *const names[] = {"running_mean", "running_var", "divisor", "targets"};
    for (int i = 0; i < CVY_N(names); i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

static double *copy_private(struct op_subject *s, int64_t *n) {
    const struct cvy_node *node = op_subject_node(s);
    double *copy = NULL;
    *n = 0;
    for (int o = 0; o < node->n_out; o++) {
        if (!(node->op->private_out >> o & 1))
            continue;
        int64_t count = interpret_count(s->g, node->out[o]);
        copy = realloc(copy, (size_t)(*n + count) * sizeof *copy);
        assert_non_null(copy);
        memcpy(copy + *n, s->in.values[node->out[o]], (size_t)count * sizeof *copy);
        *n += count;
    }
    return copy;
}

/* L of the inputs as they are; the private outputs as a copy. */
static double loss(struct op_subject *s, double **branch, int64_t *n_branch) {
    cvy_value y = op_subject_node(s)->out[0];
    interpret_node(&s->in, s->node);
    double sum = 0;
    for (int64_t k = 0; k < interpret_count(s->g, y); k++)
        sum += s->in.values[s->gout][k] * s->in.values[y][k];
    *branch = copy_private(s, n_branch);
    return sum;
}

/* The slope along v; false when there is a kink. */
static bool measure(struct op_subject *s, double *x, const double *v, int64_t n, double *slope) {
    double *branch[2], end[2];
    int64_t n_branch;
    double *kept = malloc((size_t)n * sizeof *kept);
    assert_non_null(kept);
    memcpy(kept, x, (size_t)n * sizeof *kept);
    for (int side = 0; side < 2; side++) {
        for (int64_t k = 0; k < n; k++)
            x[k] = kept[k] + (side ? h : -h) * v[k];
        end[side] = loss(s, &branch[side], &n_branch);
    }
    memcpy(x, kept, (size_t)n * sizeof *kept);
    *slope = (end[1] - end[0]) / (2 * h);
    bool is_smooth = n_branch == 0 || memcmp(branch[0], branch[1], (size_t)n_branch * sizeof(double)) == 0;
    free(branch[0]);
    free(branch[1]);
    free(kept);
    return is_smooth;
}

/* Sum of |gout y|: what L's rounding errors are relative to. */
static double magnitude(const struct op_subject *s) {
    cvy_value y = op_subject_node(s)->out[0];
    double sum = 0;
    for (int64_t k = 0; k < interpret_count(s->g, y); k++)
        sum += fabs(s->in.values[s->gout][k] * s->in.values[y][k]);
    return sum;
}

static void compare(struct op_subject *s, const char *what, int i, uint64_t seed) {
    const struct cvy_node *node = op_subject_node(s);
    const struct cvy_desc desc = cvy_graph_value(s->g, node->in[i])->desc;
    int64_t n = cvy_shape_count(&desc.shape);
    double *x = s->in.values[node->in[i]], *v = malloc((size_t)n * sizeof *v), slope = 0;
    const double *gin = s->in.values[s->gin[i]];
    bool is_smooth = false;
    assert_non_null(v);
    for (int draw = 0; draw < REDRAWS && !is_smooth; draw++) {
        cvy_fill_normal(draw, &desc, seed, v);
        is_smooth = measure(s, x, v, n, &slope);
    }
    if (!is_smooth)
        fail_msg("%s: every direction of %s crosses a kink", what, node->op->in_names[i]);
    double expected = 0, size = 0;
    for (int64_t k = 0; k < n; k++) {
        expected += gin[k] * v[k];
        size += fabs(gin[k] * v[k]);
    }
    double tolerance = 1e-6 * size + 1e-9 * magnitude(s) + 1e-12; /* truncation, rounding */
    if (!(fabs(slope - expected) <= tolerance))
        fail_msg("%s: d%s is %.12g along a direction whose slope is %.12g (allowed: %.3g)", what,
                 node->op->in_names[i], expected, slope, tolerance);
    if (fabs(slope) > 2 * tolerance && (slope > 0) != (expected > 0))
        fail_msg("%s: d%s has the wrong sign", what, node->op->in_names[i]);
    free(v);
}

static void check_case(const struct cvy_op *op, const struct cvy_case *c, uint64_t seed) {
    struct cvy_case_call call;
    struct op_subject s;
    char what[160];
    snprintf(what, sizeof what, "%s(%s) %s", op->name, c->inputs, c->attrs);
    assert_ok(cvy_case_open(op, c, &call));
    op_subject_open(&s, op, call.attrs, call.in, call.n_in);
    op_subject_differentiate(&s);
    const struct cvy_node *node = op_subject_node(&s);
    for (int i = 0; i < call.n_in; i++) {
        if (!call.is_absent[i])
            cvy_case_fill(c, i, &call.in[i], seed, interpret_value(&s.in, node->in[i]));
    }
    cvy_fill_normal(CVY_CASE_MAX, &call.out[0], seed, interpret_value(&s.in, s.gout));
    interpret_all(&s.in);
    for (int i = 0; i < call.n_in; i++) {
        if (call.is_absent[i] || call.in[i].dtype != CVY_F32 || is_constant(op->in_names[i]))
            continue;
        if (s.gin[i] == CVY_NONE)
            fail_msg("%s gives no gradient of %s", what, op->in_names[i]);
        assert_true(cvy_shape_equal(&cvy_graph_value(s.g, s.gin[i])->desc.shape, &call.in[i].shape));
        for (uint64_t d = 0; d < DIRECTIONS; d++)
            compare(&s, what, i, seed + 1000 + 100 * d + (uint64_t)i);
    }
    op_subject_close(&s);
    cvy_case_close(&call);
}

static void gradients_are_slopes(void **state) {
    (void)state;
    uint64_t seed = test_seed();
    size_t n;
    int n_checked = 0;
    const struct cvy_op *const *ops = cvy_op_table(&n);
    for (size_t k = 0; k < n; k++) {
        for (int c = 0; ops[k]->grad && c < ops[k]->n_cases; c++, n_checked++)
            check_case(ops[k], &ops[k]->cases[c], seed);
    }
    print_message("%d cases\n", n_checked);
    assert_true(n_checked > 50);
}

/* What only the first output passes on must be said, not dropped. */
static void other_outputs_refuse_gradients(void **state) {
    (void)state;
    const struct cvy_desc in[] = {
        {CVY_F32, CVY_SHAPE(2, 3)}, {CVY_I64, CVY_SHAPE(2)}, {CVY_F32, CVY_SHAPE(1)}};
    struct op_subject s;
    op_subject_open(&s, cvy_op_find("cross_entropy"), NULL, in, 3);
    const struct cvy_node node = *op_subject_node(&s);
    cvy_value gin[3] = {CVY_NONE, CVY_NONE, CVY_NONE}, gout[3] = {CVY_NONE, node.out[1], CVY_NONE};
    assert_int_equal(node.op->grad(s.g, &node, 1, gout, gin), CVY_ERR_UNSUPPORTED);
    assert_non_null(strstr(cvy_error(), "subject.losses"));
    op_subject_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(other_outputs_refuse_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
