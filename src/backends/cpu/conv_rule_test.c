/* The rule that chooses between direct and Winograd convolution. */
#include "backends/cpu/conv_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct cvy_conv2d_attrs three = {
    .kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}, .groups = 1};

static bool rule(const char *algo, enum cpu_conv_pass pass, const struct cvy_conv2d_attrs *a, int64_t batch,
                 int64_t channels, int64_t size) {
    return cpu_conv_rule(algo, pass, a, &(struct cpu_conv_shape){batch, channels, channels, size, size});
}

static void automatic(void **state) {
    (void)state;
    assert_true(rule(NULL, CPU_CONV_FORWARD, &three, 128, 512, 4));
    assert_false(rule(NULL, CPU_CONV_FORWARD, &three, 16, 512, 4));
    assert_true(rule("auto", CPU_CONV_BACKWARD_DATA, &three, 4, 128, 16));
    assert_false(rule("auto", CPU_CONV_BACKWARD_DATA, &three, 2, 128, 16));
    assert_true(rule("auto", CPU_CONV_BACKWARD_WEIGHTS, &three, 2, 128, 16));
    assert_false(rule("auto", CPU_CONV_FORWARD, &three, 128, 32, 32)); /* few channels */
}

static void only_where_it_exists(void **state) {
    struct cvy_conv2d_attrs a = three;
    (void)state;
    a.stride[1] = 2;
    assert_false(rule("winograd", CPU_CONV_FORWARD, &a, 128, 64, 32));
    a = three;
    a.kernel[0] = 1;
    assert_false(rule("winograd", CPU_CONV_FORWARD, &a, 128, 64, 32));
    a = three;
    a.dilation[0] = 2;
    assert_false(rule("winograd", CPU_CONV_FORWARD, &a, 128, 64, 32));
    a = three;
    a.groups = 2;
    assert_false(rule("winograd", CPU_CONV_FORWARD, &a, 128, 64, 32));
}

static void told(void **state) {
    (void)state;
    assert_true(rule("winograd", CPU_CONV_FORWARD, &three, 1, 8, 4));
    assert_false(rule("direct", CPU_CONV_FORWARD, &three, 128, 512, 32));
    const char *exceptions = "auto+forward:128x512x512x4x4=direct+data:1x8x8x4x4=winograd";
    assert_false(rule(exceptions, CPU_CONV_FORWARD, &three, 128, 512, 4));
    assert_true(rule(exceptions, CPU_CONV_BACKWARD_WEIGHTS, &three, 128, 512, 4));
    assert_true(rule(exceptions, CPU_CONV_BACKWARD_DATA, &three, 1, 8, 4));
}

/* Where the rule takes it, Winograd is expected to win, the more so the more tiles share a weight. */
static void estimate(void **state) {
    (void)state;
    double few = cpu_winograd_time(&(struct cpu_conv_shape){16, 256, 256, 8, 8});
    double many = cpu_winograd_time(&(struct cpu_conv_shape){128, 64, 64, 32, 32});
    assert_true(many > 0.25 && many < few && few < 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(automatic),
        cmocka_unit_test(only_where_it_exists),
        cmocka_unit_test(told),
        cmocka_unit_test(estimate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
