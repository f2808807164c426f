/* Specs, and the formats that need no folder: digits, synthetic, tensors. */
#include "data/data.h"

#include "graph/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct cvy_dataset *open_ok(const char *spec, cvy_split split) {
    struct cvy_dataset *dataset;
    if (cvy_dataset_open(spec, split, NULL, &dataset) != CVY_OK)
        fail_msg("%s", cvy_error());
    return dataset;
}

static void expect_refused(const char *spec, cvy_status code, const char *part) {
    struct cvy_dataset *dataset = NULL;
    assert_int_equal(cvy_dataset_open(spec, CVY_SPLIT_TRAIN, NULL, &dataset), code);
    assert_null(dataset);
    if (!strstr(cvy_error(), part))
        fail_msg("the error '%s' does not say '%s'", cvy_error(), part);
}

static int64_t label_of(const struct cvy_dataset *dataset, int64_t i) {
    int64_t label = -1;
    assert_int_equal(dataset->format->label(dataset, i, &label), CVY_OK);
    return label;
}

static void unknown_formats_get_a_hint(void **state) {
    (void)state;
    expect_refused("foldr:/data", CVY_ERR_USAGE, "did you mean 'folder'?");
    expect_refused("digit", CVY_ERR_USAGE, "did you mean 'digits'?");
    expect_refused("/home/me/cats", CVY_ERR_USAGE, "did you mean 'folder:/home/me/cats'?");
    expect_refused("", CVY_ERR_USAGE, "known: cifar10, cifar100, csv, digits, ");
    expect_refused("digits:all", CVY_ERR_USAGE, "takes no argument");
}

static void every_format_says_what_it_is(void **state) {
    (void)state;
    size_t n;
    const struct cvy_format *const *table = cvy_format_table(&n);
    assert_true(n >= 4);
    for (size_t i = 0; i < n; i++)
        assert_ptr_equal(strstr(table[i]->help, table[i]->prefix), table[i]->help);
}

static void digits_are_the_bundled_set(void **state) {
    (void)state;
    struct cvy_dataset *train = open_ok("digits", CVY_SPLIT_TRAIN), *val = open_ok("digits", CVY_SPLIT_VAL);
    struct cvy_image image = {0};
    int64_t c, h, w, counts[10] = {0};
    cvy_dataset_image_size(train, &c, &h, &w);
    assert_true(c == 1 && h == 8 && w == 8);
    assert_int_equal(cvy_dataset_size(train), 1437);
    assert_int_equal(cvy_dataset_size(val), 360);
    assert_int_equal(cvy_dataset_classes(val), 10);
    assert_string_equal(cvy_dataset_class_name(val, 9), "9");
    assert_null(cvy_dataset_class_name(val, 10));
    /* first row of the file: 0,0,5,13,9,1,0,0 … 0; last: … 0,0,10,14,8,1,0,0 … 8 */
    static const uint8_t first[] = {0, 0, 80, 207, 143, 16, 0, 0}, last[] = {0, 0, 159, 223, 128, 16, 0, 0};
    assert_int_equal(cvy_dataset_read(train, 0, NULL, &image), CVY_OK);
    assert_memory_equal(image.pixels, first, 8);
    assert_int_equal(cvy_dataset_read(val, 359, NULL, &image), CVY_OK);
    assert_memory_equal(image.pixels, last, 8);
    assert_int_equal(label_of(val, 359), 8);
    for (int64_t i = 0; i < 1437; i++)
        counts[label_of(train, i)]++;
    for (int64_t i = 0; i < 360; i++)
        counts[label_of(val, i)]++;
    static const int64_t expected[10] = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
    assert_memory_equal(counts, expected, sizeof counts);
    cvy_image_free(&image);
    cvy_dataset_free(train);
    cvy_dataset_free(val);
}

/* The mean absolute difference of two images. */
static double distance(const struct cvy_dataset *a, int64_t i, const struct cvy_dataset *b, int64_t j) {
    struct cvy_image x = {0}, y = {0};
    assert_int_equal(cvy_dataset_read(a, i, NULL, &x), CVY_OK);
    assert_int_equal(cvy_dataset_read(b, j, NULL, &y), CVY_OK);
    int64_t n = x.channels * x.height * x.width, sum = 0;
    for (int64_t p = 0; p < n; p++)
        sum += abs(((uint8_t *)x.pixels)[p] - ((uint8_t *)y.pixels)[p]);
    cvy_image_free(&x);
    cvy_image_free(&y);
    return (double)sum / (double)n;
}

static void synthetic_images_can_be_learnt(void **state) {
    (void)state;
    struct cvy_dataset *train = open_ok("synthetic:3x33x31,classes=5,images=17", CVY_SPLIT_TRAIN);
    struct cvy_dataset *val = open_ok("synthetic:3x33x31,classes=5,images=17", CVY_SPLIT_VAL);
    assert_int_equal(cvy_dataset_size(train), 17);
    assert_int_equal(cvy_dataset_classes(train), 5);
    for (int64_t i = 0; i < 17; i++)
        assert_int_equal(label_of(train, i), i % 5);
    assert_true(distance(train, 3, train, 3) == 0);
    double same_class = distance(train, 3, val, 8), own_val = distance(train, 3, val, 3);
    assert_true(same_class > 30 && own_val > 30); /* noise: on average 1/2 x 255 / 3 */
    for (int64_t j = 5; j < 10; j++)
        assert_true(j == 8 || distance(train, 3, val, j) > same_class + 5);
    cvy_dataset_free(train);
    cvy_dataset_free(val);
}

static void synthetic_specs_are_checked(void **state) {
    (void)state;
    expect_refused("synthetic:", CVY_ERR_USAGE, "'' is not CxHxW");
    expect_refused("synthetic:3x32", CVY_ERR_USAGE, "'3x32' is not CxHxW");
    expect_refused("synthetic:3x32x32x", CVY_ERR_USAGE, "is not CxHxW");
    expect_refused("synthetic:3x0x32", CVY_ERR_USAGE, "is not CxHxW");
    expect_refused("synthetic:3x99999999999999999999x32", CVY_ERR_USAGE, "is not CxHxW");
    expect_refused("synthetic:3x32x32,classes", CVY_ERR_USAGE, "'classes' is not NAME=NUMBER");
    expect_refused("synthetic:3x32x32,images=0", CVY_ERR_USAGE, "images=0");
    expect_refused("synthetic:3x32x32,colour=4", CVY_ERR_USAGE, "colour=4");
}

/* ---- tensors ------------------------------------------------------------------------------------- */

static char file[] = "/tmp/convoy-tensors-XXXXXX";

static int make_file(void **state) {
    (void)state;
    int fd = mkstemp(file);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(file);
}

enum { N = 3, C = 5, H = 2, W = 4 };

/* images[i] = i, with the given labels (NULL: none) and number of classes (NULL: not said). */
static void write_tensors(const int64_t *labels, cvy_dtype label_type, const char *n_classes) {
    float images[N * C * H * W];
    for (int i = 0; i < N * C * H * W; i++)
        images[i] = (float)i;
    const struct cvy_safetensor tensors[] = {
        {"images", {CVY_F32, CVY_SHAPE(N, C, H, W)}, images},
        {"labels", {label_type, CVY_SHAPE(N)}, labels},
    };
    const struct cvy_safetensors_pair pair = {"num_classes", n_classes};
    assert_int_equal(cvy_safetensors_write(file, tensors, labels ? 2 : 1, &pair, n_classes ? 1 : 0), CVY_OK);
}

static void tensors_are_taken_as_they_lie(void **state) {
    (void)state;
    char spec[256];
    struct cvy_image image = {0};
    write_tensors((const int64_t[N]){2, 0, 6}, CVY_I64, NULL);
    snprintf(spec, sizeof spec, "tensors:%s", file);
    struct cvy_dataset *dataset = open_ok(spec, CVY_SPLIT_VAL);
    assert_int_equal(cvy_dataset_size(dataset), N);
    assert_int_equal(cvy_dataset_classes(dataset), 7);
    assert_int_equal(cvy_dataset_read(dataset, 1, NULL, &image), CVY_OK);
    assert_true(image.channels == C && image.height == H && image.width == W);
    for (int i = 0; i < C * H * W; i++)
        assert_true(((float *)image.pixels)[i] == (float)(C * H * W + i));
    assert_int_equal(label_of(dataset, 2), 6);
    cvy_image_free(&image);
    cvy_dataset_free(dataset);

    write_tensors((const int64_t[N]){2, 0, 6}, CVY_I64, "10");
    dataset = open_ok(spec, CVY_SPLIT_TRAIN);
    assert_int_equal(cvy_dataset_classes(dataset), 10);
    cvy_dataset_free(dataset);

    write_tensors(NULL, CVY_I64, NULL);
    dataset = open_ok(spec, CVY_SPLIT_TRAIN);
    assert_true(dataset->is_unlabelled);
    assert_int_equal(cvy_dataset_classes(dataset), 0);
    cvy_dataset_free(dataset);
}

static void tensors_are_checked(void **state) {
    (void)state;
    char spec[256], message[256];
    snprintf(spec, sizeof spec, "tensors:%s", file);
    write_tensors((const int64_t[N]){0, -1, 0}, CVY_I64, NULL);
    snprintf(message, sizeof message, "%s: label -1 of image 1", file);
    expect_refused(spec, CVY_ERR_DATA, message);
    write_tensors((const int64_t[N]){0, 1, INT64_MAX}, CVY_I64, NULL);
    expect_refused(spec, CVY_ERR_DATA, "of image 2: must be");
    write_tensors((const int64_t[N]){0, 1, 4}, CVY_I64, "4");
    expect_refused(spec, CVY_ERR_DATA, "num_classes '4', the largest label is 4");
    write_tensors((const int64_t[N]){0}, CVY_F64, NULL);
    expect_refused(spec, CVY_ERR_DATA, "'labels' is f64[3]");
    expect_refused("tensors:", CVY_ERR_USAGE, "name the file");
    expect_refused("tensors:/absent", CVY_ERR_DATA, "/absent: ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_formats_get_a_hint),
        cmocka_unit_test(every_format_says_what_it_is),
        cmocka_unit_test(digits_are_the_bundled_set),
        cmocka_unit_test(synthetic_images_can_be_learnt),
        cmocka_unit_test(synthetic_specs_are_checked),
        cmocka_unit_test_setup_teardown(tensors_are_taken_as_they_lie, make_file, NULL),
        cmocka_unit_test_setup_teardown(tensors_are_checked, NULL, remove_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
