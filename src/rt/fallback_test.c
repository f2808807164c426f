/* Conversions between element types and doubles. */
#include "rt/fallback.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static uint16_t to_half(cvy_dtype dtype, double x) {
    uint16_t half;
    cvy_narrow(dtype, &x, 1, &half);
    return half;
}

/* Every finite half and infinity survives the way to double and back. */
static void halves_round_trip(void **state) {
    (void)state;
    for (int d = 0; d < 2; d++) {
        cvy_dtype dtype = d ? CVY_BF16 : CVY_F16;
        for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
            uint16_t half = (uint16_t)bits;
            double x;
            cvy_widen(dtype, &half, 1, &x);
            if (isnan(x)) {
                uint16_t back = to_half(dtype, x);
                cvy_widen(dtype, &back, 1, &x);
                assert_true(isnan(x));
            } else {
                assert_int_equal(to_half(dtype, x), half);
            }
        }
    }
}

static void rounds_to_nearest_even(void **state) {
    (void)state;
    assert_int_equal(to_half(CVY_F16, 1 + 0x1p-11), 0x3C00);           /* a tie, down to even */
    assert_int_equal(to_half(CVY_F16, 1 + 3 * 0x1p-11), 0x3C02);       /* a tie, up to even */
    assert_int_equal(to_half(CVY_F16, 1 + 0x1p-11 + 0x1p-40), 0x3C01); /* above the tie */
    assert_int_equal(to_half(CVY_F16, 65519), 0x7BFF);
    assert_int_equal(to_half(CVY_F16, 65520), 0x7C00); /* infinity */
    assert_int_equal(to_half(CVY_F16, 0x1p-25), 0);
    assert_int_equal(to_half(CVY_F16, -0x1.8p-25), 0x8001);
    assert_int_equal(to_half(CVY_BF16, 1 + 0x1p-8), 0x3F80);
    assert_int_equal(to_half(CVY_BF16, 1 + 0x1p-8 + 0x1p-40), 0x3F81); /* not by way of float */
    assert_int_equal(to_half(CVY_BF16, 1e39), 0x7F80);
}

static void integers(void **state) {
    const double values[] = {0, -5, 7};
    double back[3];
    int64_t wide[3];
    int32_t narrow[3];
    (void)state;
    cvy_narrow(CVY_I64, values, 3, wide);
    cvy_narrow(CVY_I32, values, 3, narrow);
    assert_true(wide[1] == -5 && narrow[2] == 7);
    cvy_widen(CVY_I64, wide, 3, back);
    assert_memory_equal(back, values, sizeof values);
    cvy_widen(CVY_I32, narrow, 3, back);
    assert_memory_equal(back, values, sizeof values);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_round_trip),
        cmocka_unit_test(rounds_to_nearest_even),
        cmocka_unit_test(integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
