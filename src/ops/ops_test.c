/* The table of operators: every descriptor is complete and consistent, every conformance case runs through
   shape inference and the reference kernel, and wrong shapes are refused with a line that names them. */
#include "op_subject.h"
#include "ops/infer.h"

static void table_is_complete(void **state) {
    (void)state;
    size_t n;
    const struct cvy_op *const *ops = cvy_op_table(&n);
    assert_true(n > 30);
    for (size_t k = 0; k < n; k++) {
        const struct cvy_op *op = ops[k];
        assert_ptr_equal(cvy_op_find(op->name), op);
        assert_non_null(op->help);
        assert_non_null(op->infer);
        assert_non_null(op->reference);
        assert_true(op->n_cases > 0 && op->n_out > 0 && op->n_out <= CVY_MAX_OUT && op->n_in_min <= op->n_in);
        for (int i = 0; i < op->n_lead_in + op->n_in; i++)
            assert_non_null(op->in_names[i]);
        for (int o = 0; o < op->n_out; o++)
            assert_non_null(op->out_names[o]);
        for (int a = 0; a < op->n_aliases; a++)
            assert_true(op->aliases[a].out < op->n_out && op->aliases[a].in < op->n_lead_in + op->n_in);
        for (int o = 0; op->flags & CVY_OP_UPDATE && o < op->n_out; o++)
            assert_true(cvy_op_aliased_input(op, o) >= 0);
    }
    assert_null(cvy_op_find("conv3d"));
}

static void defaults_are_in_range(void **state) {
    (void)state;
    size_t n;
    const struct cvy_op *const *ops = cvy_op_table(&n);
    for (size_t k = 0; k < n; k++) {
        for (int a = 0; a < ops[k]->n_attrs; a++) {
            const struct cvy_attr *attr = &ops[k]->attrs[a];
            assert_true(attr->initial >= attr->min && attr->initial <= attr->max);
            assert_true(attr->offset < ops[k]->attrs_size && attr->help);
        }
    }
}

static void run_case(const struct cvy_op *op, const struct cvy_case *c, uint64_t seed) {
    struct cvy_case_call call;
    struct op_subject s;
    assert_ok(cvy_case_open(op, c, &call));
    op_subject_open(&s, op, call.attrs, call.in, call.n_in);
    const struct cvy_node *node = op_subject_node(&s);
    assert_int_equal(node->n_out, call.n_out);
    for (int i = 0; i < call.n_in; i++) {
        if (!call.is_absent[i])
            cvy_case_fill(c, i, &call.in[i], seed, interpret_value(&s.in, node->in[i]));
    }
    interpret_all(&s.in);
    for (int o = 0; o < node->n_out; o++) {
        const struct cvy_desc *desc = &cvy_graph_value(s.g, node->out[o])->desc;
        assert_true(cvy_desc_equal(desc, &call.out[o]));
        for (int64_t i = 0; i < cvy_shape_count(&desc->shape); i++) {
            if (!isfinite(s.in.values[node->out[o]][i]))
                fail_msg("%s %s: %s[%lld] was not written", op->name, c->attrs, op->out_names[o % op->n_out],
                         (long long)i);
        }
    }
    op_subject_close(&s);
    cvy_case_close(&call);
}

static void every_case_runs(void **state) {
    (void)state;
    uint64_t seed = test_seed();
    size_t n;
    const struct cvy_op *const *ops = cvy_op_table(&n);
    for (size_t k = 0; k < n; k++) {
        for (int c = 0; c < ops[k]->n_cases; c++)
            run_case(ops[k], &ops[k]->cases[c], seed);
    }
}

static void costs_are_plausible(void **state) {
    (void)state;
    struct cvy_case_call call;
    struct cvy_cost cost;
    const struct cvy_op *op = cvy_op_find("conv2d");
    const struct cvy_case c = {"kernel=3x3 padding=1x1 groups=2", "f32[2,4,5,5] f32[6,2,3,3] f32[6]", 0,
                               NULL};
    assert_ok(cvy_case_open(op, &c, &call));
    struct cvy_infer infer = {.op = op, .attrs = call.attrs, .n_in = call.n_in, .n_out = 1, .in = call.in};
    infer.out[0] = call.out[0];
    cvy_op_cost(&infer, &cost);
    assert_true(cost.flops == 2.0 * (2 * 6 * 5 * 5) * (2 * 3 * 3)); /* elements of y, products of each */
    assert_true(cost.bytes == 4.0 * (2 * 4 * 25 + 6 * 2 * 9 + 6 + 2 * 6 * 25));
    cvy_case_close(&call);
}

static void wrong_calls_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *op, *attrs, *inputs, *said;
    } wrong[] = {
        {"conv2d", "kernel=3x3", "f32[2,3,8,8] f32[4,2,3,3] -", "weight must be f32[4,3,3,3]"},
        {"conv2d", "kernel=3x3", "f32[2,3,8,8] f32[4,3,5,5] -", "weight must be f32[4,3,3,3]"},
        {"conv2d", "kernel=9x9", "f32[2,3,8,8] f32[4,3,9,9] -", "kernel=9x9 is larger than the padded image"},
        {"conv2d", "groups=2", "f32[2,3,8,8] f32[4,3,1,1] -", "groups=2 must divide both 3 and 4 channels"},
        {"conv2d", "", "f32[2,3,8] f32[4,3,1,1] -", "x must have 4 dimensions, not 3"},
        {"conv2d", "", "i64[2,3,8,8] f32[4,3,1,1] -", "x must be floating point"},
        {"conv2d", "", "f32[2,3,8,8] f32[4,3,1,1] f32[3]", "bias must be f32[4]"},
        {"linear", "", "f32[2,3] f32[4,5] -", "weight must be f32[4,3]"},
        {"batch_norm", "", "f32[2,3,4,4] f32[4] f32[3] f32[3] f32[3]", "weight must be f32[3]"},
        {"batch_norm_backward", "relu=true", "f32[2,3] f32[2,3] f32[3] f32[3] f32[3] -", "mask"},
        {"max_pool", "kernel=3x3 padding=2x2", "f32[1,1,8,8]", "padding 2 is more than half the kernel, 3"},
        {"max_pool", "kernel=3x3", "f32[1,1,2,2]", "kernel=3x3 is larger than the padded image"},
        {"add", "", "f32[2,3] f32[3,2]", "b must be f32[2,3]"},
        {"flatten", "", "f32[2]", "x must be N,… and not empty"},
        {"unflatten", "d1=2 d2=2", "f32[3,5]", "do not make up its elements"},
        {"cross_entropy", "", "f32[4,10] i64[3] f32[1]", "labels must be i64[4]"},
        {"cross_entropy", "", "f32[4,10] f32[4] f32[1]", "labels must be i64"},
        {"sgd", "", "f32[2] f32[3] f32[4] f32[3]", "grad must be f32[3]"},
        {"batch_norm_update", "", "f32[3] f32[3] f32[1] f32[7]", "num_batches_tracked must be i64"},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        struct cvy_case_call call;
        const struct cvy_case c = {wrong[k].attrs, wrong[k].inputs, 0, NULL};
        assert_int_equal(cvy_case_open(cvy_op_find(wrong[k].op), &c, &call), CVY_ERR_USAGE);
        if (!strstr(cvy_error(), wrong[k].said) ||
            strncmp(cvy_error(), wrong[k].op, strlen(wrong[k].op)) != 0)
            fail_msg("\"%s\" does not say \"%s\"", cvy_error(), wrong[k].said);
    }
}

/* A broken model must never look right. */
static void nan_and_bad_labels_are_not_hidden(void **state) {
    (void)state;
    const struct cvy_desc in[] = {
        {CVY_F32, CVY_SHAPE(3, 3)}, {CVY_I64, CVY_SHAPE(3)}, {CVY_F32, CVY_SHAPE(1)}};
    const double logits[] = {NAN, NAN, NAN, 1, 2, 3, 9, NAN, 3}, labels[] = {0, 3, 0}, divisor = 3;
    struct op_subject s;
    op_subject_open(&s, cvy_op_find("accuracy"), NULL, in, 2);
    memcpy(interpret_value(&s.in, 0), logits, sizeof logits);
    memcpy(interpret_value(&s.in, 1), labels, sizeof labels);
    interpret_all(&s.in);
    const double *ranks = s.in.values[op_subject_node(&s)->out[0]];
    const double *hits = s.in.values[op_subject_node(&s)->out[1]];
    for (int i = 0; i < 3; i++)
        assert_true(ranks[i] == 5); /* three classes, and yet no hit among the best five */
    assert_true(hits[0] == 0 && hits[1] == 0);
    op_subject_close(&s);

    op_subject_open(&s, cvy_op_find("cross_entropy"), NULL, in, 3);
    memcpy(interpret_value(&s.in, 0), logits, sizeof logits);
    memcpy(interpret_value(&s.in, 1), labels, sizeof labels);
    *interpret_value(&s.in, 2) = divisor;
    interpret_all(&s.in);
    const double *losses = s.in.values[op_subject_node(&s)->out[1]];
    assert_true(isnan(losses[0]) && isnan(losses[1]) && isnan(losses[2]));
    op_subject_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_complete),       cmocka_unit_test(defaults_are_in_range),
        cmocka_unit_test(every_case_runs),         cmocka_unit_test(costs_are_plausible),
        cmocka_unit_test(wrong_calls_are_refused), cmocka_unit_test(nan_and_bad_labels_are_not_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
