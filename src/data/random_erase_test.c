/* Random erasing: boxes as torchvision draws them, and what is written where. */
#include "data/random_erase.h"

#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { HEIGHT = 48, WIDTH = 64, N_DRAWS = 40000 };

/* Means of 200000 draws of torchvision 0.29: tools/make_golden_transforms.py. */
static const double golden_height = 22.740, golden_width = 23.869, golden_area = 527.17;

static void boxes_are_those_of_torchvision(void **state) {
    (void)state;
    double height = 0, width = 0, area = 0;
    int n = 0;
    for (uint64_t i = 0; i < N_DRAWS; i++) {
        struct cvy_rng rng;
        cvy_rng_init(&rng, 1, CVY_RNG_TEST, i, 0);
        struct cvy_box box = cvy_draw_random_erase(&rng, 0.25, HEIGHT, WIDTH);
        assert_true(box.top >= 0 && box.left >= 0);
        assert_true(box.top + box.height <= HEIGHT && box.left + box.width <= WIDTH);
        height += (double)box.height;
        width += (double)box.width;
        area += (double)(box.height * box.width);
        n += box.height > 0;
    }
    assert_true(fabs((double)n / N_DRAWS - 0.25) < 0.01); /* 4.6 deviations */
    assert_true(fabs(height / n / golden_height - 1) < 0.02);
    assert_true(fabs(width / n / golden_width - 1) < 0.02);
    assert_true(fabs(area / n / golden_area - 1) < 0.025);
}

static void nothing_at_0_always_at_1(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        struct cvy_rng rng;
        cvy_rng_init(&rng, 1, CVY_RNG_TEST, i, 0);
        assert_int_equal(cvy_draw_random_erase(&rng, 0, HEIGHT, WIDTH).height, 0);
        assert_true(cvy_draw_random_erase(&rng, 1, HEIGHT, WIDTH).height > 0);
    }
}

static void one_pixel_has_no_smaller_box(void **state) {
    (void)state;
    struct cvy_rng rng;
    cvy_rng_init(&rng, 1, CVY_RNG_TEST, 0, 0);
    for (int i = 0; i < 100; i++) {
        struct cvy_box box = cvy_draw_random_erase(&rng, 1, 1, 1);
        assert_int_equal(box.height * box.width, 0);
    }
}

/* Element (c, y, x) of an image of `mean[c]` in the box and `outside` elsewhere. */
static void expect(const struct cvy_image *image, const struct cvy_box *box, const double *inside,
                   double outside) {
    for (int64_t c = 0; c < 3; c++) {
        for (int64_t y = 0; y < 4; y++) {
            for (int64_t x = 0; x < 5; x++) {
                int64_t at = image->order == CVY_NHWC ? (y * 5 + x) * 3 + c : (c * 4 + y) * 5 + x;
                double is = image->dtype == CVY_U8 ? ((uint8_t *)image->pixels)[at]
                                                   : (double)((float *)image->pixels)[at];
                bool is_inside = y >= box->top && y < box->top + box->height && x >= box->left &&
                                 x < box->left + box->width;
                assert_true(is == (is_inside ? inside[c] : outside));
            }
        }
    }
}

static void the_box_becomes_the_mean(void **state) {
    (void)state;
    const float mean[4] = {0.5f, -1, 2};
    const struct cvy_box box = {.top = 1, .left = 2, .height = 2, .width = 3};
    const double levels[] = {128, 0, 255}, values[] = {0.5, -1, 2}; /* 127.5 is rounded to even */
    struct cvy_image image = {0};
    assert_int_equal(cvy_image_reshape(&image, 3, 4, 5, CVY_U8, CVY_NHWC), CVY_OK);
    for (int i = 0; i < 60; i++)
        ((uint8_t *)image.pixels)[i] = 7;
    cvy_erase(&image, &box, mean);
    expect(&image, &box, levels, 7);
    assert_int_equal(cvy_image_reshape(&image, 3, 4, 5, CVY_F32, CVY_NCHW), CVY_OK);
    for (int i = 0; i < 60; i++)
        ((float *)image.pixels)[i] = 7;
    cvy_erase(&image, &box, mean);
    expect(&image, &box, values, 7);
    cvy_image_free(&image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_are_those_of_torchvision),
        cmocka_unit_test(nothing_at_0_always_at_1),
        cmocka_unit_test(one_pixel_has_no_smaller_box),
        cmocka_unit_test(the_box_becomes_the_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
