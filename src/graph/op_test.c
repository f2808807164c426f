/* Attributes and what follows from a descriptor, on an operator made for it. */
#include "graph/op.h"

#include <math.h>
#include <string.h>

#include "cvy_test.h"

struct attrs {
    int64_t groups;
    bool ceil_mode;
    int64_t kernel[2];
    double eps;
};

static const struct cvy_attr attr_table[] = {
    {"kernel", CVY_ATTR_PAIR, offsetof(struct attrs, kernel), 1, 1, 100, ""},
    {"groups", CVY_ATTR_INT, offsetof(struct attrs, groups), 1, 1, 1e9, ""},
    {"eps", CVY_ATTR_FLOAT, offsetof(struct attrs, eps), 1e-5, 0, 1, ""},
    {"ceil_mode", CVY_ATTR_BOOL, offsetof(struct attrs, ceil_mode), 0, 0, 1, ""},
};

/* An optimiser's shape: a lead, then groups (param, grad, optional state); param and state are replaced. */
static const struct cvy_op op = {
    .name = "test",
    .attrs_size = sizeof(struct attrs),
    .attrs = attr_table,
    .n_attrs = 4,
    .n_lead_in = 1,
    .n_in = 3,
    .n_in_min = 2,
    .n_out = 2,
    .in_names = (const char *const[]){"hyper", "param", "grad", "state"},
    .out_names = (const char *const[]){"param", "state"},
    .flags = CVY_OP_VARIADIC | CVY_OP_UPDATE,
    .aliases = (const struct cvy_alias[]){{0, 1}, {1, 3}},
    .n_aliases = 2,
};

static void assert_prints(const struct attrs *attrs, const char *expected) {
    struct cvy_text text = {0};
    cvy_attrs_print(&op, attrs, &text);
    assert_string_equal(text.data ? text.data : "", expected);
    cvy_text_free(&text);
}

static void test_attributes(void **state) {
    (void)state;
    struct attrs attrs, again;
    memset(&attrs, 0xAB, sizeof attrs);
    cvy_attrs_default(&op, &attrs);
    assert_int_equal(attrs.kernel[1], 1);
    assert_int_equal(attrs.groups, 1);
    assert_true(attrs.eps == 1e-5);
    assert_false(attrs.ceil_mode);
    assert_prints(&attrs, "");
    assert_ok(cvy_attrs_parse(&op, "", &attrs));
    assert_ok(cvy_attrs_parse(&op, " ceil_mode=true  kernel=3x5 eps=0.1 ", &attrs));
    assert_prints(&attrs, "kernel=3x5 eps=0.1 ceil_mode=true");
    assert_ok(
        cvy_attrs_parse(&op, "kernel=7 groups=1000000000 ceil_mode=false eps=0.3333333333333333", &attrs));
    assert_prints(&attrs, "kernel=7x7 groups=1000000000 eps=0.3333333333333333");
    cvy_attrs_default(&op, &again);
    assert_false(cvy_attrs_equal(&op, &attrs, &again));
    assert_ok(cvy_attrs_parse(&op, "kernel=7x7 groups=1000000000 eps=0.3333333333333333", &again));
    assert_true(cvy_attrs_equal(&op, &attrs, &again));
}

static void test_wrong_attributes(void **state) {
    (void)state;
    struct attrs attrs;
    cvy_attrs_default(&op, &attrs);
    assert_fails(cvy_attrs_parse(&op, "kernal=3", &attrs), CVY_ERR_USAGE, "did you mean \"kernel\"");
    assert_fails(cvy_attrs_parse(&op, "zzzzzzzz=3", &attrs), CVY_ERR_USAGE, "kernel, groups, eps, ceil_mode");
    assert_fails(cvy_attrs_parse(&op, "kernel", &attrs), CVY_ERR_USAGE, "name=value");
    assert_fails(cvy_attrs_parse(&op, "kernel=", &attrs), CVY_ERR_USAGE, "a pair");
    assert_fails(cvy_attrs_parse(&op, "kernel=3x", &attrs), CVY_ERR_USAGE, "a pair");
    assert_fails(cvy_attrs_parse(&op, "kernel=3x3x3", &attrs), CVY_ERR_USAGE, "a pair");
    assert_fails(cvy_attrs_parse(&op, "kernel=0x3", &attrs), CVY_ERR_USAGE, "between 1 and 100");
    assert_fails(cvy_attrs_parse(&op, "kernel=3x101", &attrs), CVY_ERR_USAGE, "between 1 and 100");
    assert_fails(cvy_attrs_parse(&op, "groups=1.5", &attrs), CVY_ERR_USAGE, "a whole number");
    assert_fails(cvy_attrs_parse(&op, "groups=9223372036854775807", &attrs), CVY_ERR_USAGE, "a whole number");
    assert_fails(cvy_attrs_parse(&op, "eps=nan", &attrs), CVY_ERR_USAGE, "between");
    assert_fails(cvy_attrs_parse(&op, "eps=inf", &attrs), CVY_ERR_USAGE, "between");
    assert_fails(cvy_attrs_parse(&op, "ceil_mode=1", &attrs), CVY_ERR_USAGE, "true or false");
    assert_ok(cvy_attrs_check(&op, &attrs));
    attrs.eps = NAN;
    assert_fails(cvy_attrs_check(&op, &attrs), CVY_ERR_USAGE, "eps");
}

static void test_numbers_print_exactly(void **state) {
    (void)state;
    static const double numbers[] = {
        0, 1, -1.5, 0.1, 1.0 / 3, 5e-4, 1e-300, 123456789, 0x1.fffffffffffffp+1023};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct cvy_text text = {0};
        double back;
        cvy_f64_print(&text, numbers[i]);
        assert_true(cvy_parse_f64(text.data, &back) && back == numbers[i]);
        cvy_text_free(&text);
    }
    struct cvy_text text = {0};
    cvy_f64_print(&text, 5e-4);
    assert_string_equal(text.data, "0.0005");
    cvy_text_free(&text);
}

static void test_groups(void **state) {
    (void)state;
    assert_int_equal(cvy_op_groups(&op, 1), -1); /* no group */
    assert_int_equal(cvy_op_groups(&op, 4), 1);
    assert_int_equal(cvy_op_groups(&op, 6), -1);
    assert_int_equal(cvy_op_groups(&op, 7), 2);
    assert_false(cvy_op_is_optional(&op, 0));
    assert_false(cvy_op_is_optional(&op, 5));
    assert_true(cvy_op_is_optional(&op, 6));
    assert_string_equal(cvy_op_in_name(&op, 0), "hyper");
    assert_string_equal(cvy_op_in_name(&op, 5), "grad");
    assert_int_equal(cvy_op_aliased_input(&op, 0), 1); /* param of group 0 */
    assert_int_equal(cvy_op_aliased_input(&op, 3), 6); /* state of group 1 */
}

static void test_infer(void **state) {
    (void)state;
    struct cvy_desc in[7] = {0}, out[4];
    static const char *const texts[] = {"f32[2]",   "f32[3]",   "f32[3]",  "f32[3]",
                                        "f32[4,5]", "f32[4,5]", "f32[4,5]"};
    for (int i = 0; i < 7; i++)
        assert_ok(cvy_desc_parse(texts[i], &in[i]));
    assert_ok(cvy_op_infer(&op, NULL, 7, in, out));
    assert_true(cvy_desc_equal(&out[0], &in[1]) && cvy_desc_equal(&out[3], &in[6]));
    assert_fails(cvy_op_infer(&op, NULL, 6, in, out), CVY_ERR_FAILED, "6 inputs");
}

static void test_default_cost(void **state) {
    (void)state;
    struct cvy_desc in[] = {{CVY_F32, CVY_SHAPE(2, 3)}, CVY_DESC_ABSENT};
    struct cvy_infer call = {.op = &op, .n_in = 2, .n_out = 1, .in = in, .out = {{CVY_U8, CVY_SHAPE(6)}}};
    struct cvy_cost cost;
    cvy_op_cost(&call, &cost);
    assert_true(cost.flops == 0 && cost.bytes == 24 + 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_wrong_attributes),
        cmocka_unit_test(test_numbers_print_exactly),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_infer),
        cmocka_unit_test(test_default_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
