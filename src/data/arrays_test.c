/* cifar10:, cifar100: and idx: on small sets made here. */
#include "data/arrays.h"

#include "data/data_fixture.h"

#include <zlib.h>

enum { PIXELS = 32 * 32, RECORD = 1 + 3 * PIXELS };

/* Pixel k of channel c of the image whose label is `label`. */
static uint8_t value(int label, int c, int k) { return (uint8_t)(label * 31 + c * 7 + k); }

/* n records with the labels first, first + 1, …, each behind n_labels - 1 bytes of another kind. */
static void put_records(const char *name, int n, int first, size_t n_labels, size_t n_cut) {
    size_t record = n_labels + 3 * PIXELS, n_bytes = (size_t)n * record;
    uint8_t *bytes = calloc(1, n_bytes);
    for (int i = 0; i < n; i++) {
        uint8_t *at = bytes + (size_t)i * record;
        memset(at, 99, n_labels);
        at[n_labels - 1] = (uint8_t)(first + i);
        for (int k = 0; k < 3 * PIXELS; k++)
            at[n_labels + (size_t)k] = value(first + i, k / PIXELS, k % PIXELS);
    }
    put(name, bytes, n_bytes - n_cut);
    free(bytes);
}

static void put_cifar10(void) {
    static const char names[] = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
    char name[32];
    for (int b = 1; b <= 5; b++) {
        snprintf(name, sizeof name, "data_batch_%d.bin", b);
        put_records(name, b, 2 * b - 1, 1, 0); /* 1, 3, …: of b samples */
    }
    put_records("test_batch.bin", 2, 8, 1, 0);
    put("batches.meta.txt", names, sizeof names - 1);
}

/* Sample i is the image of that label. */
static void expect_sample(const struct cvy_dataset *dataset, int64_t i, int label) {
    struct cvy_image image = {0};
    int64_t found;
    assert_int_equal(cvy_dataset_label(dataset, i, &found), CVY_OK);
    assert_int_equal(found, label);
    assert_int_equal(dataset->format->pixels(dataset, i, &image), CVY_OK);
    assert_true(image.channels == 3 && image.height == 32 && image.width == 32 && image.order == CVY_NHWC);
    for (int k = 0; k < 3 * PIXELS; k++)
        assert_int_equal(((uint8_t *)image.pixels)[k], value(label, k % 3, k / 3));
    cvy_image_free(&image);
}

static void cifar10_is_read_across_its_files(void **state) {
    (void)state;
    put_cifar10();
    struct cvy_dataset *train = open_ok_below("cifar10", "", CVY_SPLIT_TRAIN);
    assert_int_equal(cvy_dataset_size(train), 15);
    assert_int_equal(cvy_dataset_classes(train), 10);
    assert_string_equal(cvy_dataset_class_name(train, 9), "truck");
    assert_string_equal(train->preset, "cifar");
    expect_sample(train, 0, 1);
    expect_sample(train, 2, 4);
    int64_t label; /* the last is the fifth of the file that begins with 9, so no class */
    assert_int_equal(cvy_dataset_label(train, 14, &label), CVY_ERR_DATA);
    cvy_dataset_free(train);
    struct cvy_dataset *val = open_ok_below("cifar10", "", CVY_SPLIT_VAL);
    assert_int_equal(cvy_dataset_size(val), 2);
    expect_sample(val, 1, 9);
    cvy_dataset_free(val);
}

static void cifar100_takes_the_fine_label(void **state) {
    (void)state;
    put_records("train.bin", 3, 40, 2, 0);
    put_records("test.bin", 1, 99, 2, 0);
    struct cvy_dataset *train = open_ok_below("cifar100", "", CVY_SPLIT_TRAIN);
    assert_int_equal(cvy_dataset_classes(train), 100);
    assert_string_equal(cvy_dataset_class_name(train, 41), "41");
    expect_sample(train, 1, 41);
    cvy_dataset_free(train);
    put("fine_label_names.txt", "apple\n", 6);
    expect_refused_below("cifar100", "", CVY_SPLIT_VAL, "100 lines");
}

static void cut_and_missing_files_are_named(void **state) {
    (void)state;
    expect_refused_below("cifar10", "", CVY_SPLIT_TRAIN, "data_batch_1.bin: cannot be opened");
    put_cifar10();
    put_records("data_batch_3.bin", 2, 0, 1, 5);
    expect_refused_below("cifar10", "", CVY_SPLIT_TRAIN, "data_batch_3.bin: 6141 bytes are no whole number");
    put("test_batch.bin", "", 0);
    expect_refused_below("cifar10", "", CVY_SPLIT_VAL, "test_batch.bin: ");
}

/* ---- idx ----------------------------------------------------------------------------------------- */

static void put_packed(const char *name, const void *bytes, size_t n_bytes, size_t n_cut) {
    uint8_t packed[4096];
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)n_bytes, .next_out = packed};
    stream.avail_out = sizeof packed;
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    put(name, packed, stream.total_out - n_cut);
    deflateEnd(&stream);
}

static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2,  0,  0,
                                 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 4, 0};

static void expect_second_image(cvy_split split) {
    struct cvy_dataset *dataset = open_ok_below("idx", "", split);
    struct cvy_image image = {0};
    int64_t label;
    assert_int_equal(cvy_dataset_size(dataset), 2);
    assert_int_equal(cvy_dataset_classes(dataset), 5);
    assert_int_equal(cvy_dataset_label(dataset, 0, &label), CVY_OK);
    assert_int_equal(label, 4);
    assert_int_equal(dataset->format->pixels(dataset, 1, &image), CVY_OK);
    assert_true(image.channels == 1 && image.height == 2 && image.width == 3);
    assert_memory_equal(image.pixels, images + 22, 6);
    cvy_image_free(&image);
    cvy_dataset_free(dataset);
}

static void idx_is_read_plain_and_packed(void **state) {
    (void)state;
    put("train-images-idx3-ubyte", images, sizeof images);
    put("train-labels-idx1-ubyte", labels, sizeof labels);
    put_packed("t10k-images-idx3-ubyte.gz", images, sizeof images, 0);
    put_packed("t10k-labels-idx1-ubyte.gz", labels, sizeof labels, 0);
    expect_second_image(CVY_SPLIT_TRAIN);
    expect_second_image(CVY_SPLIT_VAL);
    put("emnist-train-images-idx3-ubyte", images, sizeof images);
    expect_refused_below("idx", "", CVY_SPLIT_TRAIN, "both match");
}

static void damaged_idx_is_named(void **state) {
    (void)state;
    uint8_t wrong[sizeof images];
    memcpy(wrong, images, sizeof images);
    expect_refused_below("idx", "", CVY_SPLIT_TRAIN, "there is no train-images-idx3-ubyte");
    put("train-images-idx3-ubyte", images, sizeof images);
    expect_refused_below("idx", "", CVY_SPLIT_TRAIN, "there is no train-labels-idx1-ubyte");
    put("train-labels-idx1-ubyte", labels, sizeof labels - 1);
    expect_refused_below("idx", "", CVY_SPLIT_TRAIN, "labels-idx1-ubyte: holds 1 bytes, its header says 2");
    put("train-labels-idx1-ubyte", labels, sizeof labels);
    wrong[7] = 3;
    put("train-images-idx3-ubyte", wrong, sizeof wrong);
    expect_refused_below("idx", "", CVY_SPLIT_TRAIN, "holds 12 bytes, its header says 18");
    memset(wrong + 4, 0xFF, 12);
    put("train-images-idx3-ubyte", wrong, sizeof wrong);
    expect_refused_below("idx", "", CVY_SPLIT_TRAIN, "holds 12 bytes");
    wrong[2] = 0x0D; /* floats */
    put("train-images-idx3-ubyte", wrong, sizeof wrong);
    expect_refused_below("idx", "", CVY_SPLIT_TRAIN, "is no IDX file of bytes in 3 dimensions");
    wrong[3] = 1;
    put("train-images-idx3-ubyte", wrong, 5);
    expect_refused_below("idx", "", CVY_SPLIT_TRAIN, "is no IDX file");
}

static void damaged_gzip_is_named(void **state) {
    (void)state;
    put_packed("train-images-idx3-ubyte.gz", images, sizeof images, 0);
    put_packed("train-labels-idx1-ubyte.gz", labels, sizeof labels, 9);
    expect_refused_below("idx", "", CVY_SPLIT_TRAIN, "labels-idx1-ubyte.gz: is cut short");
    static const char no_stream[] = "\x1f\x8b\x08\0\0\0\0\0\0\x03 no deflate stream";
    put("train-labels-idx1-ubyte.gz", no_stream, sizeof no_stream);
    expect_refused_below("idx", "", CVY_SPLIT_TRAIN, "labels-idx1-ubyte.gz: is damaged: ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(cifar10_is_read_across_its_files),
        TEST(cifar100_takes_the_fine_label),
        TEST(cut_and_missing_files_are_named),
        TEST(idx_is_read_plain_and_packed),
        TEST(damaged_idx_is_named),
        TEST(damaged_gzip_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
