/* Crop, padding, flip and resize on images whose pixels tell where they came from. */
#include "data/fake_set.h"
#include "data/transform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SIDE = 6, SEED = 7 };

static struct cvy_dataset bytes_set; /* set by main */

/* Pixel (y, x) of channel c is 1 + 36 c + 6 y + x, so 0 is padding. */
static int at(int64_t c, int64_t y, int64_t x) { return (int)(1 + SIDE * SIDE * c + SIDE * y + x); }

static void fill(struct cvy_image *image, cvy_dtype dtype, cvy_image_order order) {
    assert_int_equal(cvy_image_reshape(image, 3, SIDE, SIDE, dtype, order), CVY_OK);
    for (int64_t c = 0; c < 3; c++) {
        for (int64_t y = 0; y < SIDE; y++) {
            for (int64_t x = 0; x < SIDE; x++) {
                if (dtype == CVY_U8)
                    ((uint8_t *)image->pixels)[(y * SIDE + x) * 3 + c] = (uint8_t)at(c, y, x);
                else
                    ((float *)image->pixels)[(c * SIDE + y) * SIDE + x] = (float)at(c, y, x);
            }
        }
    }
}

static void apply(const struct cvy_transform *t, const struct cvy_image *image, uint64_t sample,
                  uint32_t epoch, void *out) {
    struct cvy_transform_work work = {0};
    struct cvy_rng rng;
    cvy_rng_init(&rng, SEED, CVY_RNG_AUGMENT, sample, epoch);
    const struct cvy_transform_draw draw = {t, &rng};
    if (cvy_transform_apply(&draw, &work, image, out) != CVY_OK)
        fail_msg("%s", cvy_error());
    cvy_transform_work_free(&work);
}

static struct cvy_transform plan(const struct cvy_dataset *dataset, const cvy_loader_options *options) {
    struct cvy_transform t;
    if (cvy_transform_plan(dataset, options, &t) != CVY_OK)
        fail_msg("%s", cvy_error());
    return t;
}

static void evaluation_crops_the_centre(void **state) {
    (void)state;
    cvy_loader_options options;
    struct cvy_image image = {0};
    uint8_t out[3 * 3 * 4];
    cvy_loader_defaults(&options);
    options.preset = "cifar";
    options.augment = false;
    options.crop[0] = 3;
    options.crop[1] = 4;
    fill(&image, CVY_U8, CVY_NHWC);
    struct cvy_transform t = plan(&bytes_set, &options);
    assert_int_equal(cvy_transform_bytes(&t), sizeof out);
    apply(&t, &image, 0, 0, out);
    for (int64_t y = 0; y < 3; y++) { /* (6 - 3) / 2 = 1.5 is rounded to even, 2; (6 - 4) / 2 = 1 */
        for (int64_t x = 0; x < 4; x++)
            assert_int_equal(out[(y * 4 + x) * 3 + 1], at(1, y + 2, x + 1));
    }
    cvy_image_free(&image);
}

/* Finds the window (top, left, flip) that explains the pixels; fails when there is none. Returns its number. */
static int explain(const uint8_t *out, int64_t pad) {
    for (int64_t top = -pad; top <= pad; top++) {
        for (int64_t left = -pad; left <= pad; left++) {
            for (int is_flipped = 0; is_flipped < 2; is_flipped++) {
                bool is_same = true;
                for (int64_t i = 0; i < SIDE * SIDE * 3 && is_same; i++) {
                    int64_t c = i % 3, x = i / 3 % SIDE, y = i / 3 / SIDE + top;
                    x = (is_flipped ? SIDE - 1 - x : x) + left;
                    bool is_inside = x >= 0 && x < SIDE && y >= 0 && y < SIDE;
                    is_same = out[i] == (is_inside ? at(c, y, x) : 0);
                }
                if (is_same)
                    return (int)(((top + pad) * (2 * pad + 1) + left + pad) * 2 + is_flipped);
            }
        }
    }
    fail_msg("no crop and flip gives these pixels");
    return -1;
}

static void training_crops_and_flips_at_random(void **state) {
    (void)state;
    enum { PAD = 4, N_WINDOWS = (2 * PAD + 1) * (2 * PAD + 1) * 2, N_DRAWS = 40 * N_WINDOWS };
    static int counts[N_WINDOWS];
    cvy_loader_options options;
    struct cvy_image image = {0};
    uint8_t out[SIDE * SIDE * 3], again[sizeof out];
    cvy_loader_defaults(&options);
    options.preset = "cifar";
    fill(&image, CVY_U8, CVY_NHWC);
    struct cvy_transform t = plan(&bytes_set, &options);
    memset(counts, 0, sizeof counts);
    for (int i = 0; i < N_DRAWS; i++) {
        memset(out, 0xA5, sizeof out);
        apply(&t, &image, (uint64_t)i, 3, out);
        apply(&t, &image, (uint64_t)i, 3, again);
        assert_memory_equal(out, again, sizeof out);
        counts[explain(out, PAD)]++;
    }
    double chi2 = 0;
    for (int w = 0; w < N_WINDOWS; w++)
        chi2 += (counts[w] - 40.0) * (counts[w] - 40.0) / 40.0;
    assert_true(chi2 > 90 && chi2 < 260); /* 161 degrees of freedom: 161 +- 18 */
    cvy_image_free(&image);
}

static void floats_by_planes_move_alike(void **state) {
    (void)state;
    struct cvy_dataset floats = bytes_set;
    cvy_loader_options options;
    struct cvy_image bytes_image = {0}, float_image = {0};
    uint8_t as_bytes[SIDE * SIDE * 3];
    float as_floats[SIDE * SIDE * 3];
    floats.dtype = CVY_F32;
    floats.order = CVY_NCHW;
    cvy_loader_defaults(&options);
    options.preset = "cifar";
    fill(&bytes_image, CVY_U8, CVY_NHWC);
    fill(&float_image, CVY_F32, CVY_NCHW);
    struct cvy_transform t_bytes = plan(&bytes_set, &options), t_floats = plan(&floats, &options);
    for (uint64_t sample = 0; sample < 20; sample++) {
        apply(&t_bytes, &bytes_image, sample, 0, as_bytes);
        apply(&t_floats, &float_image, sample, 0, as_floats);
        for (int64_t p = 0; p < SIDE * SIDE; p++) {
            for (int64_t c = 0; c < 3; c++)
                assert_true(as_floats[c * SIDE * SIDE + p] == (float)as_bytes[p * 3 + c]);
        }
    }
    cvy_image_free(&bytes_image);
    cvy_image_free(&float_image);
}

static void sizes_that_vary_are_resized_to_the_crop(void **state) {
    (void)state;
    struct cvy_dataset varied = bytes_set;
    cvy_loader_options options;
    struct cvy_image image = {0};
    uint8_t out[8 * 8 * 3];
    varied.height = varied.width = 0;
    cvy_loader_defaults(&options);
    options.crop[0] = options.crop[1] = 8;
    struct cvy_transform t = plan(&varied, &options);
    assert_int_equal(t.resize, 8);
    assert_int_equal(cvy_image_reshape(&image, 3, 50, 20, CVY_U8, CVY_NHWC), CVY_OK);
    memset(image.pixels, 77, 50 * 20 * 3);
    apply(&t, &image, 0, 0, out);
    for (size_t i = 0; i < sizeof out; i++)
        assert_int_equal(out[i], 77);
    cvy_image_free(&image);
}

/* Against Pillow's convert("L") of the same colours. */
static void grey_is_the_luma(void **state) {
    static const uint8_t rgb[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 255, 255, 255, 77, 77, 77},
                         grey[] = {76, 150, 29, 18, 255, 77};
    (void)state;
    struct cvy_dataset colours = bytes_set;
    cvy_loader_options options;
    struct cvy_image image = {0};
    uint8_t out[6];
    colours.height = 2;
    colours.width = 3;
    for (int c = 0; c < 3; c++) {
        colours.mean[c] = 0.5f;
        colours.std[c] = 0.25f;
    }
    cvy_loader_defaults(&options);
    options.channels = 1;
    struct cvy_transform t = plan(&colours, &options);
    assert_int_equal(cvy_transform_bytes(&t), sizeof out);
    assert_true(t.mean[0] == 0.5f && t.std[0] == 0.25f);
    assert_int_equal(cvy_image_reshape(&image, 3, 2, 3, CVY_U8, CVY_NHWC), CVY_OK);
    memcpy(image.pixels, rgb, sizeof rgb);
    apply(&t, &image, 0, 0, out);
    assert_memory_equal(out, grey, sizeof grey);
    cvy_image_free(&image);
}

static void expect_refused(const struct cvy_dataset *dataset, const cvy_loader_options *options,
                           const char *part) {
    struct cvy_transform t;
    assert_int_equal(cvy_transform_plan(dataset, options, &t), CVY_ERR_USAGE);
    if (!strstr(cvy_error(), part))
        fail_msg("the error '%s' does not say '%s'", cvy_error(), part);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    struct cvy_dataset varied = bytes_set, floats = bytes_set;
    cvy_loader_options good, bad;
    cvy_loader_defaults(&good);
    varied.height = varied.width = 0;
    floats.dtype = CVY_F32;
    expect_refused(&varied, &good, "how large a crop");
    bad = good, bad.preset = "imagnet";
    expect_refused(&bytes_set, &bad, "preset 'imagnet' is unknown");
    bad = good, bad.crop[0] = bad.crop[1] = 7;
    expect_refused(&bytes_set, &bad, "does not fit");
    bad = good, bad.resize = 8;
    expect_refused(&floats, &bad, "cannot be resized");
    bad = good, bad.resize = -1;
    expect_refused(&bytes_set, &bad, "must be between");
    bad = good, bad.pad = -2;
    expect_refused(&bytes_set, &bad, "padding -2");
    bad = good, bad.random_erase = 1.5;
    expect_refused(&bytes_set, &bad, "must be between 0 and 1");
    bad = good, bad.random_erase = NAN;
    expect_refused(&bytes_set, &bad, "must be between 0 and 1");
    bad = good, bad.channels = 4;
    expect_refused(&bytes_set, &bad, "takes images of 4 channels");
    bad = good, bad.has_mean_std = true; /* std 0 */
    expect_refused(&bytes_set, &bad, "std above 0");
}

/* With progressive resize: what is resized keeps its proportion to the crop, and the rest of the plan stays. */
static void smaller_squares_keep_the_proportion(void **state) {
    (void)state;
    static const struct {
        int64_t resize, side, expected;
    } cases[] = {{0, 3, 3}, {0, 6, 0}, {8, 3, 4}, {8, 6, 8}, {9, 5, 8}, {9, 1, 2}};
    struct cvy_dataset floats = bytes_set;
    cvy_loader_options options;
    struct cvy_transform t;
    cvy_loader_defaults(&options);
    options.preset = "cifar";
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        options.resize = cases[k].resize;
        options.crop[0] = options.crop[1] = 6;
        const struct cvy_transform full = plan(&bytes_set, &options);
        assert_int_equal(cvy_transform_scale(&full, &bytes_set, cases[k].side, &t), CVY_OK);
        assert_int_equal(t.height, cases[k].side);
        assert_int_equal(t.width, cases[k].side);
        assert_int_equal(t.resize, cases[k].expected);
        assert_int_equal(t.pad, full.pad);
        assert_true(t.flip == full.flip && t.channels == full.channels);
        assert_int_equal(cvy_transform_scale(&full, &bytes_set, 0, &t), CVY_ERR_USAGE);
        assert_int_equal(cvy_transform_scale(&full, &bytes_set, 7, &t), CVY_ERR_USAGE);
        assert_non_null(strstr(cvy_error(), "of side 7: must be 1 to 6"));
    }
    options.resize = 0;
    options.crop[1] = 5;
    const struct cvy_transform oblong = plan(&bytes_set, &options);
    assert_int_equal(cvy_transform_scale(&oblong, &bytes_set, 3, &t), CVY_ERR_USAGE);
    assert_non_null(strstr(cvy_error(), "are not square"));
    floats.dtype = CVY_F32;
    options.crop[1] = 6;
    const struct cvy_transform of_floats = plan(&floats, &options);
    assert_int_equal(cvy_transform_scale(&of_floats, &floats, 3, &t), CVY_ERR_USAGE);
    assert_non_null(strstr(cvy_error(), "are floats"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grey_is_the_luma),
        cmocka_unit_test(evaluation_crops_the_centre),
        cmocka_unit_test(training_crops_and_flips_at_random),
        cmocka_unit_test(floats_by_planes_move_alike),
        cmocka_unit_test(sizes_that_vary_are_resized_to_the_crop),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(smaller_squares_keep_the_proportion),
    };
    bytes_set = fake_head(3, SIDE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
