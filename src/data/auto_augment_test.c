/* Amounts of the operations against torchvision's, and how often they are drawn. */
#include "data/auto_augment.h"

#include <math.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { HEIGHT = 20, WIDTH = 30, N = 3000 };

/* _augmentation_space of RandAugment(magnitude=9) for 224x192 and of TrivialAugmentWide() at 20, as torchvision 0.29
   prints them. */
static void amounts_are_torchvisions(void **state) {
    (void)state;
    static const struct expected {
        const char *name;
        double ra, ta_wide;
        bool is_signed;
    } all[] = {
        {"Identity", 0, 0, false},
        {"ShearX", 0.09, 0.66, true},
        {"ShearY", 0.09, 0.66, true},
        {"TranslateX", 26.1027, 21.3333, true},
        {"TranslateY", 30.4532, 21.3333, true},
        {"Rotate", 9, 90, true},
        {"Brightness", 0.27, 0.66, true},
        {"Color", 0.27, 0.66, true},
        {"Contrast", 0.27, 0.66, true},
        {"Sharpness", 0.27, 0.66, true},
        {"Posterize", 7, 4, false},
        {"Solarize", 178.5, 85, false},
        {"AutoContrast", 0, 0, false},
        {"Equalize", 0, 0, false},
    };
    enum { N_OPS = sizeof all / sizeof *all };
    const char *name;
    double amount;
    bool is_signed;
    for (int op = 0; op < N_OPS; op++) {
        assert_true(cvy_auto_augment_op(CVY_AUTO_RA, op, 9, 224, 192, &name, &amount, &is_signed));
        assert_string_equal(name, all[op].name);
        assert_true(fabs(amount - all[op].ra) < 1e-4);
        assert_true(is_signed == all[op].is_signed);
        assert_true(cvy_auto_augment_op(CVY_AUTO_TA_WIDE, op, 20, 224, 192, &name, &amount, &is_signed));
        assert_true(fabs(amount - all[op].ta_wide) < 1e-4);
        assert_non_null(cvy_distortion_find(name));
    }
    assert_false(cvy_auto_augment_op(CVY_AUTO_RA, N_OPS, 9, 224, 192, &name, &amount, &is_signed));
}

static void fill(struct cvy_image *image) {
    assert_int_equal(cvy_image_reshape(image, 3, HEIGHT, WIDTH, CVY_U8, CVY_NHWC), CVY_OK);
    for (int i = 0; i < 3 * HEIGHT * WIDTH; i++)
        ((uint8_t *)image->pixels)[i] = (uint8_t)(40 + i * 7 % 170);
}

/* How many of N images stay as they are. */
static int count_unchanged(enum cvy_auto_augment policy, int magnitude) {
    struct cvy_image image = {0}, spare = {0}, before = {0};
    int n = 0;
    fill(&before);
    for (uint64_t i = 0; i < N; i++) {
        struct cvy_rng rng;
        fill(&image);
        cvy_rng_init(&rng, 3, CVY_RNG_AUGMENT, i, 0);
        assert_int_equal(cvy_auto_augment(policy, magnitude, &rng, &image, &spare), CVY_OK);
        assert_true(image.height == HEIGHT && image.width == WIDTH);
        n += memcmp(image.pixels, before.pixels, 3 * HEIGHT * WIDTH) == 0;
    }
    cvy_image_free(&image);
    cvy_image_free(&spare);
    cvy_image_free(&before);
    return n;
}

static void every_operation_has_its_share(void **state) {
    (void)state;
    assert_int_equal(count_unchanged(CVY_AUTO_NONE, 9), N);
    /* Magnitude 0 changes nothing but by AutoContrast and Equalize (each 1 of 14, and the latter not what is equal),
       and Solarize at 255 only what is 255. */
    int weak = count_unchanged(CVY_AUTO_RA, 0), strong = count_unchanged(CVY_AUTO_RA, 30);
    assert_true(fabs(weak / (double)N - 12.0 / 14 * 12 / 14) < 0.04);
    assert_true(strong < N / 14);
    int wide = count_unchanged(CVY_AUTO_TA_WIDE, 0);
    assert_true(wide > N / 14 && wide < N / 5);
}

static void jitter_keeps_to_its_ranges(void **state) {
    (void)state;
    struct cvy_image image = {0}, spare = {0};
    static const float none[4] = {0}, bright[4] = {0.5F, 0, 0, 0}, dark[4] = {4, 0, 0, 0};
    double sum = 0;
    int least = 255, most = 0, n_black = 0;
    for (uint64_t i = 0; i < N; i++) {
        struct cvy_rng rng;
        cvy_rng_init(&rng, 3, CVY_RNG_AUGMENT, i, 0);
        assert_int_equal(cvy_image_reshape(&image, 3, 1, 1, CVY_U8, CVY_NHWC), CVY_OK);
        memset(image.pixels, 100, 3);
        assert_int_equal(cvy_color_jitter(none, &rng, &image, &spare), CVY_OK);
        assert_int_equal(*(uint8_t *)image.pixels, 100);
        assert_int_equal(cvy_color_jitter(bright, &rng, &image, &spare), CVY_OK);
        int level = *(uint8_t *)image.pixels;
        sum += level;
        least = level < least ? level : least;
        most = level > most ? level : most;
        memset(image.pixels, 100, 3);
        assert_int_equal(cvy_color_jitter(dark, &rng, &image, &spare), CVY_OK);
        n_black += *(uint8_t *)image.pixels < 100;
    }
    assert_true(least >= 50 && least < 55 && most <= 150 && most > 145);
    assert_true(fabs(sum / N - 99.5) < 2);
    assert_true(fabs(n_black / (double)N - 1.0 / 5) < 0.03); /* factors 0 to 5 */
    cvy_image_free(&image);
    cvy_image_free(&spare);
}

static void policies_have_names(void **state) {
    (void)state;
    enum cvy_auto_augment policy;
    assert_int_equal(cvy_auto_augment_find(NULL, &policy), CVY_OK);
    assert_int_equal(policy, CVY_AUTO_NONE);
    assert_int_equal(cvy_auto_augment_find("ta_wide", &policy), CVY_OK);
    assert_int_equal(policy, CVY_AUTO_TA_WIDE);
    assert_int_equal(cvy_auto_augment_find("imagenet", &policy), CVY_ERR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts_are_torchvisions),
        cmocka_unit_test(every_operation_has_its_share),
        cmocka_unit_test(jitter_keeps_to_its_ranges),
        cmocka_unit_test(policies_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
