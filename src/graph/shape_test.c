/* Types, shapes and their text: what is written is read back, and hostile sizes are refused. */
#include "graph/shape.h"

#include <string.h>

#include "cvy_test.h"

static void test_types(void **state) {
    (void)state;
    static const struct {
        cvy_dtype dtype;
        const char *name;
        size_t n_bytes;
    } known[] = {{CVY_F32, "f32", 4}, {CVY_F64, "f64", 8}, {CVY_BF16, "bf16", 2}, {CVY_F16, "f16", 2},
                 {CVY_I32, "i32", 4}, {CVY_I64, "i64", 8}, {CVY_U8, "u8", 1}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        cvy_dtype dtype;
        assert_string_equal(cvy_dtype_name(known[i].dtype), known[i].name);
        assert_int_equal(cvy_dtype_size(known[i].dtype), known[i].n_bytes);
        assert_true(cvy_dtype_parse(known[i].name, &dtype));
        assert_int_equal(dtype, known[i].dtype);
    }
    cvy_dtype dtype;
    assert_false(cvy_dtype_parse("f8", &dtype));
    assert_false(cvy_dtype_parse("", &dtype));
}

static void test_round_trip(void **state) {
    (void)state;
    static const char *const texts[] = {"f32[32,3,8,8]", "u8[0]", "i64[]", "bf16[1,2,3,4,5,6]",
                                        "f64[9223372036854775807,0]"};
    for (size_t i = 0; i < 4; i++) {
        struct cvy_desc desc;
        struct cvy_text text = {0};
        assert_ok(cvy_desc_parse(texts[i], &desc));
        cvy_desc_print(&text, &desc);
        assert_string_equal(text.data, texts[i]);
        cvy_text_free(&text);
    }
    struct cvy_desc desc;
    assert_ok(cvy_desc_parse("f32[32,3,8,8]", &desc));
    assert_true(cvy_shape_equal(&desc.shape, &CVY_SHAPE(32, 3, 8, 8)));
    assert_int_equal(cvy_shape_count(&desc.shape), 32 * 3 * 8 * 8);
    assert_int_equal(cvy_desc_bytes(&desc), 4 * 32 * 3 * 8 * 8);
    assert_int_equal(cvy_desc_parse(texts[4], &desc), CVY_ERR_DATA); /* overflows before the zero comes */
}

static void test_absent(void **state) {
    (void)state;
    struct cvy_desc desc = {CVY_U8, CVY_SHAPE(1)};
    assert_false(cvy_desc_is_absent(&desc));
    assert_ok(cvy_desc_parse("-", &desc));
    assert_true(cvy_desc_is_absent(&desc));
}

static void test_refuses(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "f32",
                                        "f32[",
                                        "f32[]]",
                                        "f32[1",
                                        "f32[1,]",
                                        "f32[,1]",
                                        "f32[1]x",
                                        "f32[x]",
                                        "[1]",
                                        "f33[1]",
                                        "f32[1,2,3,4,5,6,7]",
                                        "f32[-1]",
                                        "f32[99999999999999999999]",
                                        "f32[4294967296,4294967296]",
                                        "f64[1152921504606846976]",
                                        "f32[ 1]",
                                        "f32[1][2]",
                                        "bf16extra[1]",
                                        "f32[1,2,3,4,5,6,"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct cvy_desc desc = {CVY_U8, CVY_SHAPE(7)};
        if (cvy_desc_parse(texts[i], &desc) != CVY_ERR_DATA)
            fail_msg("%s was taken for a description", texts[i]);
        assert_int_equal(desc.shape.dim[0], 7); /* untouched */
    }
    struct cvy_desc wrong = {CVY_F32, {.n = CVY_MAX_DIMS + 1}};
    assert_fails(cvy_desc_check(&wrong), CVY_ERR_DATA, "dimensions");
    wrong = (struct cvy_desc){(cvy_dtype)99, CVY_SHAPE(1)};
    assert_fails(cvy_desc_check(&wrong), CVY_ERR_DATA, "type");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
