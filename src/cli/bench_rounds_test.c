/* What `bench compare` is made of: words out of a text, medians, ratios. */
#include "cli/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void words(void **state) {
    (void)state;
    struct cvy_pool pool = {0};
    struct bench_words list = {.items = {0}};
    assert_int_equal(bench_add_text(&pool, "  --a 1\t--b='x  y' --c\"'\"d '' ", &list), CVY_OK);
    static const char *const want[] = {"--a", "1", "--b=x  y", "--c'd", ""};
    assert_int_equal(list.items.n, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(list.items.data[i], want[i]);
    assert_int_equal(bench_add_text(&pool, "", &list), CVY_OK);
    assert_int_equal(list.items.n, 5);
    assert_int_equal(bench_add_text(&pool, "a 'b", &list), CVY_ERR_USAGE);
    assert_int_equal(bench_add_text(&pool, "a '", &list), CVY_ERR_USAGE);
    cvy_vec_free(&list.items);
    cvy_pool_free(&pool);
}

static void medians(void **state) {
    (void)state;
    const double values[] = {5, 1, 4, 2};
    struct bench_summary odd = bench_summarize(values, 3), even = bench_summarize(values, 4);
    assert_true(odd.median == 4 && odd.lowest == 1 && odd.highest == 5);
    assert_true(even.median == 3 && even.lowest == 1);
}

/* The machine was half as fast in the second round: the ratio does not mind. */
static void ratios(void **state) {
    (void)state;
    double a[] = {100, 50, 100}, b[] = {110, 55, 95};
    struct bench_setting sa = {.rates = {a, 3, 3}}, sb = {.rates = {b, 3, 3}};
    struct bench_ratio ratio;
    assert_int_equal(bench_compare(&sa, &sb, &ratio), CVY_OK);
    assert_int_equal(ratio.n, 3);
    assert_int_equal(ratio.n_faster, 2);
    assert_true(ratio.summary.median == 1.1 && ratio.summary.lowest == 0.95);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),
        cmocka_unit_test(medians),
        cmocka_unit_test(ratios),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
