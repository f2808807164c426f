/* Philox against the known answers of Random123's kat_vectors, and the distributions' moments. */
#include "base/rng.h"
#include "cvy_test.h"

#include <math.h>
#include <string.h>

static void test_known_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], expected[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t out[4];
        cvy_philox(cases[i].key, cases[i].counter, out);
        assert_memory_equal(out, cases[i].expected, sizeof out);
    }
}

static void test_counter_is_as_documented(void **state) {
    (void)state;
    struct cvy_rng rng;
    cvy_rng_init(&rng, 5, CVY_RNG_DROPOUT, 0x1111111122222222, 0x33333333);
    uint64_t position = 0x4444444455555555;
    const uint32_t counter[4] = {0x55555555, 0x33333333, 0x22222222, 0x11111111 ^ 0x44444444};
    uint32_t expected[4], out[4];
    cvy_philox(rng.key, counter, expected);
    cvy_rng_at(&rng, position, out);
    assert_memory_equal(out, expected, sizeof out);
    uint64_t key = 0; /* splitmix64's first number from seed 0 is this one */
    cvy_rng_init(&rng, (uint64_t)CVY_RNG_TEST << 56, CVY_RNG_TEST, 0, 0);
    key = (uint64_t)rng.key[1] << 32 | rng.key[0];
    assert_true(key == 0xE220A8397B1DCDAF);
}

static void test_sequence_is_the_blocks(void **state) {
    (void)state;
    struct cvy_rng rng;
    uint32_t block[4];
    cvy_rng_init(&rng, 1, CVY_RNG_SHUFFLE, 0, 2);
    for (uint64_t position = 0; position < 5; position++) {
        cvy_rng_at(&rng, position, block);
        for (int i = 0; i < 4; i++)
            assert_int_equal(cvy_rng_u32(&rng), block[i]);
    }
}

static void test_streams_differ(void **state) {
    (void)state;
    struct cvy_rng rng[5];
    cvy_rng_init(&rng[0], 1, CVY_RNG_INIT, 1, 1);
    cvy_rng_init(&rng[1], 2, CVY_RNG_INIT, 1, 1);
    cvy_rng_init(&rng[2], 1, CVY_RNG_SHUFFLE, 1, 1);
    cvy_rng_init(&rng[3], 1, CVY_RNG_INIT, 2, 1);
    cvy_rng_init(&rng[4], 1, CVY_RNG_INIT, 1, 2);
    uint32_t first[5][4];
    for (int i = 0; i < 5; i++) {
        cvy_rng_at(&rng[i], 0, first[i]);
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(first[i], first[k], sizeof first[i]);
    }
}

static void test_below_is_uniform(void **state) {
    (void)state;
    struct cvy_rng rng;
    cvy_rng_init(&rng, 3, CVY_RNG_TEST, 0, 0);
    int count[6] = {0};
    for (int i = 0; i < 60000; i++)
        count[cvy_rng_below(&rng, 6)]++;
    for (int i = 0; i < 6; i++)
        assert_in_range(count[i], 10000 - 400, 10000 + 400); /* more than 4 deviations */
    for (int i = 0; i < 100; i++)
        assert_int_equal(cvy_rng_below(&rng, 1), 0);
    int n_upper = 0; /* with a modulo, the lower half would come twice as often */
    for (int i = 0; i < 10000; i++)
        n_upper += cvy_rng_below(&rng, 0xC0000000u) >= 0x60000000u;
    assert_in_range(n_upper, 4800, 5200);
}

static void test_moments(void **state) {
    (void)state;
    enum { N = 200000 };
    struct cvy_rng rng;
    double sum = 0, squares = 0, fourth = 0, uniform = 0;
    cvy_rng_init(&rng, 4, CVY_RNG_TEST, 0, 0);
    for (int i = 0; i < N; i++) {
        double x = cvy_rng_normal(&rng), u = cvy_rng_uniform(&rng);
        assert_true(isfinite(x) && u >= 0 && u < 1);
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
        uniform += u;
    }
    assert_true(fabs(sum / N) < 0.01);
    assert_true(fabs(squares / N - 1) < 0.015);
    assert_true(fabs(fourth / N - 3) < 0.1);
    assert_true(fabs(uniform / N - 0.5) < 0.003);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),          cmocka_unit_test(test_counter_is_as_documented),
        cmocka_unit_test(test_sequence_is_the_blocks), cmocka_unit_test(test_streams_differ),
        cmocka_unit_test(test_below_is_uniform),       cmocka_unit_test(test_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
