/* Sixteen positions at once give the numbers of one after the other. */
#include "backends/cpu/philox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void same_numbers(void **state) {
    static const uint64_t positions[] = {0, 1, 12345, 0xFFFFFFF8u, (uint64_t)1 << 40, UINT64_MAX - 20};
    (void)state;
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        struct cvy_rng rng;
        uint32_t got[CPU_PHILOX_NUMBERS], expected[4];
        cvy_rng_init(&rng, 7 + i, CVY_RNG_DROPOUT, i << 33 | 5, (uint32_t)i);
        cpu_philox(&rng, positions[i], got);
        for (int l = 0; l < CPU_LANES; l++) {
            cvy_rng_at(&rng, positions[i] + (uint64_t)l, expected);
            assert_memory_equal(got + 4 * l, expected, sizeof expected);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
