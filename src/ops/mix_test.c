/* The draws of MixUp and CutMix: the distribution of the shares, and boxes that are worth them. */
#include "base/thread.h"
#include "ops/mix.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { N = 20000 };

/* Beta(a, a) has mean 1/2 and variance 1 / (8 a + 4), and fourth central moment 3 / (16 (2 a + 1) (2 a + 3)). */
static void shares_are_beta(void **state) {
    static const double alphas[] = {0.2, 1, 3};
    const uint64_t seed = (uint64_t)cvy_now_ns() % 1000000;
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int k = 0; k < 3; k++) {
        const double a = alphas[k], var = 1 / (8 * a + 4), fourth = 3 / (16 * (2 * a + 1) * (2 * a + 3));
        const struct cvy_mix_draw_attrs attrs = {.mixup_alpha = a, .image = {1, 1}, .training = true};
        double mean = 0, m2 = 0;
        for (uint64_t step = 0; step < N; step++) {
            float draw[CVY_MIX_DRAW];
            cvy_mix_draw(&attrs, seed, step, draw);
            assert_true(draw[CVY_MIX_SHARE] >= 0 && draw[CVY_MIX_SHARE] <= 1);
            assert_true(draw[CVY_MIX_PIXELS] == draw[CVY_MIX_SHARE] && draw[CVY_MIX_BOTTOM] == 0);
            mean += (double)draw[CVY_MIX_SHARE] / N;
            m2 += ((double)draw[CVY_MIX_SHARE] - 0.5) * ((double)draw[CVY_MIX_SHARE] - 0.5) / N;
        }
        assert_true(fabs(mean - 0.5) < 6 * sqrt(var / N)); /* six standard deviations */
        assert_true(fabs(m2 - var) < 6 * sqrt((fourth - var * var) / N));
    }
}

static void boxes_have_their_share(void **state) {
    const struct cvy_mix_draw_attrs attrs = {
        .mixup_alpha = 1, .cutmix_alpha = 1, .image = {20, 30}, .training = true};
    const uint64_t seed = (uint64_t)cvy_now_ns() % 1000000;
    int n_boxes = 0;
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint64_t step = 0; step < N; step++) {
        float draw[CVY_MIX_DRAW];
        cvy_mix_draw(&attrs, seed, step, draw);
        float height = draw[CVY_MIX_BOTTOM] - draw[CVY_MIX_TOP],
              width = draw[CVY_MIX_RIGHT] - draw[CVY_MIX_LEFT];
        assert_true(draw[CVY_MIX_TOP] >= 0 && height >= 0 && draw[CVY_MIX_BOTTOM] <= 20);
        assert_true(draw[CVY_MIX_LEFT] >= 0 && width >= 0 && draw[CVY_MIX_RIGHT] <= 30);
        if (draw[CVY_MIX_PIXELS] == 1) {
            n_boxes++;
            assert_true(fabsf(draw[CVY_MIX_SHARE] - (1 - height * width / 600)) < 1e-6f);
        }
    }
    assert_true(abs(n_boxes - N / 2) < 6 * sqrt(N) / 2); /* one of the two by chance */
}

static void evaluation_mixes_nothing(void **state) {
    const struct cvy_mix_draw_attrs attrs = {.mixup_alpha = 1, .cutmix_alpha = 1, .image = {20, 30}};
    float draw[CVY_MIX_DRAW];
    (void)state;
    cvy_mix_draw(&attrs, 1, 2, draw);
    for (int k = 0; k < CVY_MIX_DRAW; k++)
        assert_true(draw[k] == (k == CVY_MIX_SHARE || k == CVY_MIX_PIXELS ? 1 : 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_beta),
        cmocka_unit_test(boxes_have_their_share),
        cmocka_unit_test(evaluation_mixes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
