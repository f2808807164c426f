/* Windows of the random resized crop: within the image, distributed as said, and resized without what lies around. */
#include "data/resized_crop.h"
#include "data/transform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { HEIGHT = 300, WIDTH = 400, N = 20000 };

static struct cvy_box draw(uint64_t sample, int64_t height, int64_t width) {
    struct cvy_rng rng;
    cvy_rng_init(&rng, 1, CVY_RNG_AUGMENT, sample, 0);
    return cvy_draw_resized_crop(&rng, height, width);
}

static void windows_are_distributed_as_said(void **state) {
    (void)state;
    double areas = 0, log_ratios = 0, tops = 0;
    int n_small = 0;
    for (uint64_t i = 0; i < N; i++) {
        struct cvy_box box = draw(i, HEIGHT, WIDTH);
        assert_true(box.top >= 0 && box.left >= 0 && box.height >= 1 && box.width >= 1);
        assert_true(box.top + box.height <= HEIGHT && box.left + box.width <= WIDTH);
        double area = (double)(box.height * box.width) / (HEIGHT * WIDTH),
               ratio = (double)box.width / (double)box.height;
        assert_true(area > 0.079 && area <= 1 && ratio > 0.74 && ratio < 1.35);
        areas += area;
        log_ratios += log(ratio);
        n_small += area < 0.31;
        tops += box.height < HEIGHT ? (double)box.top / (double)(HEIGHT - box.height) : 0.5;
    }
    /* An image of 4 : 3 refuses large windows that are narrow: figures of 2 million draws in numpy */
    assert_true(fabs(areas / N - 0.4331) < 0.006);
    assert_true(fabs(log_ratios / N - 0.0307) < 0.006);
    assert_true(fabs((double)n_small / N - 0.3368) < 0.012);
    assert_true(fabs(tops / N - 0.5) < 0.01);
}

static void narrow_images_give_their_centre(void **state) {
    (void)state;
    struct cvy_box wide = draw(3, 9, 1000), tall = draw(3, 1000, 9), one = draw(3, 1, 1);
    assert_true(wide.top == 0 && wide.height == 9 && wide.width == 12 && wide.left == 494);
    assert_true(tall.left == 0 && tall.width == 9 && tall.height == 12 && tall.top == 494);
    assert_true(one.top == 0 && one.left == 0 && one.height == 1 && one.width == 1);
}

/* White around a black window would shine into its edges if the whole image were resized. */
static void nothing_shines_in_from_outside(void **state) {
    (void)state;
    enum { OUT = 32 };
    const struct cvy_dataset set = {
        .spec = (char *)"set", .channels = 3, .dtype = CVY_U8, .order = CVY_NHWC, .preset = "none"};
    cvy_loader_options options;
    struct cvy_transform t;
    struct cvy_transform_work work = {0};
    struct cvy_image image = {0};
    uint8_t out[OUT * OUT * 3];
    cvy_loader_defaults(&options);
    options.preset = "imagenet";
    options.crop[0] = options.crop[1] = OUT;
    assert_int_equal(cvy_transform_plan(&set, &options, &t), CVY_OK);
    for (uint64_t i = 0; i < 20; i++) {
        struct cvy_rng rng;
        assert_int_equal(cvy_image_reshape(&image, 3, HEIGHT, WIDTH, CVY_U8, CVY_NHWC), CVY_OK);
        struct cvy_box box = draw(i, HEIGHT, WIDTH);
        memset(image.pixels, 255, (size_t)HEIGHT * WIDTH * 3);
        for (int64_t y = box.top; y < box.top + box.height; y++)
            memset((uint8_t *)image.pixels + (y * WIDTH + box.left) * 3, 0, (size_t)box.width * 3);
        cvy_rng_init(&rng, 1, CVY_RNG_AUGMENT, i, 0);
        memset(out, 99, sizeof out);
        struct cvy_transform_draw made = {&t, &rng};
        struct cvy_image_part part;
        assert_true(cvy_transform_part(&made, &part));
        cvy_image_take(&image, &part);
        assert_int_equal(cvy_transform_apply(&made, &work, &image, out), CVY_OK);
        for (size_t k = 0; k < sizeof out; k++)
            assert_int_equal(out[k], 0);
    }
    cvy_transform_work_free(&work);
    cvy_image_free(&image);
}

static void evaluation_takes_the_centre_of_more(void **state) {
    (void)state;
    const struct cvy_dataset set = {
        .spec = (char *)"set", .channels = 3, .dtype = CVY_U8, .order = CVY_NHWC, .preset = "none"};
    cvy_loader_options options;
    struct cvy_transform t;
    cvy_loader_defaults(&options);
    options.preset = "imagenet";
    options.augment = false;
    options.crop[0] = options.crop[1] = 224;
    assert_int_equal(cvy_transform_plan(&set, &options, &t), CVY_OK);
    assert_true(t.resize == 256 && t.height == 224 && t.width == 224 && !t.flip && !t.is_resized_crop);
    options.resize = 232;
    assert_int_equal(cvy_transform_plan(&set, &options, &t), CVY_OK);
    assert_int_equal(t.resize, 232);
    options.augment = true;
    options.pad = 4;
    assert_int_equal(cvy_transform_plan(&set, &options, &t), CVY_ERR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_distributed_as_said),
        cmocka_unit_test(narrow_images_give_their_centre),
        cmocka_unit_test(nothing_shines_in_from_outside),
        cmocka_unit_test(evaluation_takes_the_centre_of_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
