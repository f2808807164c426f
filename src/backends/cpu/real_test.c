/* bfloat16 as the kernels round it: every one there and back, and all bits of the backend's cast kernel those of the
   reference, for numbers of all sizes, ties, infinities and NaN. */
#include "backends/cpu/vector.h"
#include "cvy_test.h"
#include "rt/fallback.h"

#include <math.h>

enum { N = 1 << 16 };

static uint16_t reference(float x) {
    uint16_t bits;
    cvy_narrow(CVY_BF16, &(double){(double)x}, 1, &bits);
    return bits;
}

static void there_and_back(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < N; bits++) {
        cpu_bf16 x = {(uint16_t)bits};
        float wide = cpu_bf16_widen(x);
        uint32_t want = isnan(wide) ? bits | 0x40 : bits;
        assert_int_equal(cpu_bf16_narrow(wide).bits, want);
        assert_int_equal(cpu_bf16_is_positive(x), wide > 0);
        assert_int_equal(cpu_bf16_relu(x).bits, wide <= 0 ? 0 : bits);
    }
}

/* Around each bfloat16: halfway to its neighbour, just above and below. */
static void rounded_as_the_reference(void **state) {
    static const uint32_t offsets[] = {1, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
    (void)state;
    for (uint32_t high = 0; high < N; high++) {
        float x[CPU_LANES] = {0};
        cpu_bf16 y[CPU_LANES];
        cpu_v16 v;
        for (int k = 0; k < 5; k++) {
            uint32_t bits = high << 16 | offsets[k];
            memcpy(&x[k], &bits, sizeof bits);
        }
        cpu_load(&v, x, CPU_LANES);
        cpu_store(y, &v, 5);
        for (int k = 0; k < 5; k++) {
            assert_int_equal(y[k].bits, reference(x[k]));
            assert_int_equal(cpu_bf16_narrow(x[k]).bits, y[k].bits);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back),
                                       cmocka_unit_test(rounded_as_the_reference)};
    return cmocka_run_group_tests_name("cpu.real", tests, NULL, NULL);
}
