/* Initial values: the moments and range of each distribution, and what they depend on. The stream is fixed by seed
   and name, so these statistics are the same in every run; bounds are 5 standard errors. */
#include "graph/init.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { N = 100001 }; /* odd: the last normal number is half of a pair */

static const struct cvy_desc VECTOR = {CVY_F32, {.n = 1, .dim = {N}}};
static float values[N], others[N];

static void fill(uint64_t seed, const char *name, struct cvy_init init, float *out) {
    memset(out, 0xFF, N * sizeof *out); /* NaN */
    assert_int_equal(cvy_init_fill(seed, name, &VECTOR, &init, out), CVY_OK);
}

/* The mean of (x - centre)^power. */
static double moment(double centre, int power) {
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += pow(values[i] - centre, power);
    return sum / N;
}

static void assert_near(double x, double expected, double bound) {
    if (!(fabs(x - expected) <= bound))
        fail_msg("%.6g is not within %.2g of %.6g", x, bound, expected);
}

static void test_constants(void **state) {
    (void)state;
    fill(1, "a", (struct cvy_init){CVY_INIT_ZERO, 0}, values);
    fill(1, "a", (struct cvy_init){CVY_INIT_ONE, 0}, others);
    for (int i = 0; i < N; i++) {
        assert_true(values[i] == 0);
        assert_true(others[i] == 1);
    }
    fill(1, "a", (struct cvy_init){CVY_INIT_CONSTANT, 1e-6}, values);
    for (int i = 0; i < N; i++)
        assert_true(values[i] == 1e-6f);
}

static void test_uniform(void **state) {
    (void)state;
    const double a = 0.2;
    fill(7, "conv1.weight", (struct cvy_init){CVY_INIT_UNIFORM, a}, values);
    double low = 1, high = -1;
    for (int i = 0; i < N; i++) {
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    assert_true(low >= -a && low < -0.999 * a);
    assert_true(high <= a && high > 0.999 * a);
    assert_near(moment(0, 1), 0, 5 * a / sqrt(3.0 * N));
    /* E x^2 = a^2/3; the variance of x^2 is a^4 (1/5 - 1/9) */
    assert_near(moment(0, 2), a * a / 3, 5 * a * a * sqrt((1 / 5.0 - 1 / 9.0) / N));
}

static void test_normal(void **state) {
    (void)state;
    const double s = 0.05;
    fill(7, "conv1.weight", (struct cvy_init){CVY_INIT_NORMAL, s}, values);
    assert_near(moment(0, 1), 0, 5 * s / sqrt(N));
    assert_near(moment(0, 2), s * s, 5 * s * s * sqrt(2.0 / N));
    /* E x^3 = 0, E x^4 = 3 s^4; the variances of x^3 and x^4 are 15 s^6 and 96 s^8 */
    assert_near(moment(0, 3), 0, 5 * pow(s, 3) * sqrt(15.0 / N));
    assert_near(moment(0, 4), 3 * pow(s, 4), 5 * pow(s, 4) * sqrt(96.0 / N));
    /* neighbours are drawn from one point, and must be independent all the same */
    double product = 0;
    for (int i = 0; i + 1 < N; i++)
        product += (double)values[i] * values[i + 1];
    assert_near(product / (N - 1), 0, 5 * s * s / sqrt(N));
}

static void test_depends_on_seed_and_name_alone(void **state) {
    (void)state;
    const struct cvy_init normal = {CVY_INIT_NORMAL, 1};
    fill(3, "fc.weight", normal, values);
    fill(3, "fc.weight", normal, others);
    assert_memory_equal(values, others, sizeof values);
    fill(4, "fc.weight", normal, others);
    assert_memory_not_equal(values, others, sizeof values);
    fill(3, "fc.bias", normal, others);
    assert_memory_not_equal(values, others, sizeof values);

    const struct cvy_desc shorter = {CVY_F32, CVY_SHAPE(10, 3)};
    assert_int_equal(cvy_init_fill(3, "fc.weight", &shorter, &normal, others), CVY_OK);
    assert_memory_equal(values, others, 30 * sizeof *values);
}

static void test_refuses_other_types(void **state) {
    (void)state;
    const struct cvy_desc count = {.dtype = CVY_I64};
    const struct cvy_init zero = {CVY_INIT_ZERO, 0};
    assert_int_equal(cvy_init_fill(1, "bn1.num_batches_tracked", &count, &zero, values), CVY_ERR_USAGE);
    assert_non_null(strstr(cvy_error(), "bn1.num_batches_tracked"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_normal),
        cmocka_unit_test(test_depends_on_seed_and_name_alone),
        cmocka_unit_test(test_refuses_other_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
