/* The text of --conv-algo: what is right, and which exception a convolution finds. */
#include "ops/conv_algo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void right_and_wrong(void **state) {
    (void)state;
    static const char *const right[] = {NULL,
                                        "auto",
                                        "direct",
                                        "winograd",
                                        "auto+data:1x2x3x4x5=direct",
                                        "direct+forward:1x2x3x4x5=winograd+weights:1x2x3x4x5=auto"};
    static const char *const wrong[] = {
        "",
        "fast",
        "auto+",
        "auto+data:1x2x3x4x5",
        "auto+data:1x2x3x4=direct",
        "auto+data:1x2x3x4x5=",
        "auto+data:1x2x3x4x0=direct",
        "auto+data:1x2x3x4x99999999999999999999=direct",
        "auto+sideways:1x2x3x4x5=direct",
        "auto+data:1x2x3x4x5=direct+",
        "+data:1x2x3x4x5=direct",
        "auto+data=direct:1x2x3x4x5+forward:1x2x3x4x5=direct",
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        assert_int_equal(cvy_conv_algo_check(right[i]), CVY_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(cvy_conv_algo_check(wrong[i]), CVY_ERR_USAGE);
    assert_int_equal(cvy_conv_algo_check("winogrd"), CVY_ERR_USAGE);
    assert_non_null(strstr(cvy_error(), "did you mean winograd"));
}

static void exceptions(void **state) {
    (void)state;
    const char *text = "auto+data:16x64x32x8x4=direct+forward:16x64x32x8x4=winograd";
    struct cvy_conv_key key = {CVY_CONV_FORWARD, 16, 64, 32, 8, 4};
    assert_int_equal(cvy_conv_algo_find(text, &key), CVY_CONV_WINOGRAD);
    key.pass = CVY_CONV_BACKWARD_DATA;
    assert_int_equal(cvy_conv_algo_find(text, &key), CVY_CONV_DIRECT);
    key.pass = CVY_CONV_BACKWARD_WEIGHTS;
    assert_int_equal(cvy_conv_algo_find(text, &key), CVY_CONV_AUTO);
    assert_int_equal(cvy_conv_algo_find("winograd", &key), CVY_CONV_WINOGRAD);
    assert_int_equal(cvy_conv_algo_find(NULL, &key), CVY_CONV_AUTO);
    key = (struct cvy_conv_key){CVY_CONV_FORWARD, 17, 64, 32, 8, 4};
    assert_int_equal(cvy_conv_algo_find(text, &key), CVY_CONV_AUTO);
}

static void keys(void **state) {
    (void)state;
    struct cvy_text text = {0};
    cvy_conv_key_print(&(struct cvy_conv_key){CVY_CONV_BACKWARD_WEIGHTS, 16, 64, 32, 8, 4}, &text);
    assert_string_equal(text.data, "weights:16x64x32x8x4");
    cvy_text_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_and_wrong),
        cmocka_unit_test(exceptions),
        cmocka_unit_test(keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
