/* Statistics of images that are written here, whose figures are known. */
#include "data/data_fixture.h"
#include "data/statistics.h"

#include <math.h>

/* MNIST's files: n images of rows x columns, then their labels. */
static void put_idx(const uint8_t *pixels, int n, int rows, int columns, const uint8_t *labels) {
    uint8_t images[256] = {
        0, 0, 8, 3, 0, 0, 0, (uint8_t)n, 0, 0, 0, (uint8_t)rows, 0, 0, 0, (uint8_t)columns};
    uint8_t classes[64] = {0, 0, 8, 1, 0, 0, 0, (uint8_t)n};
    memcpy(images + 16, pixels, (size_t)(n * rows * columns));
    memcpy(classes + 8, labels, (size_t)n);
    put("train-images-idx3-ubyte", images, (size_t)(16 + n * rows * columns));
    put("train-labels-idx1-ubyte", classes, (size_t)(8 + n));
}

struct counted {
    int64_t n_done, n_calls;
};

/* As struct cvy_survey_progress has it. */
static void count(void *context, int64_t n_done, int64_t n) {
    struct counted *counted = context;
    assert_true(n_done == ++counted->n_calls && n_done <= n);
    counted->n_done = n_done;
}

static void levels_and_classes(void **state) {
    (void)state;
    const uint8_t pixels[] = {0, 255, 255, 0, 51, 51, 51, 51, 102, 102, 102, 102}, labels[] = {1, 0, 1};
    put_idx(pixels, 3, 2, 2, labels);
    struct cvy_dataset *dataset = open_ok_below("idx", "", CVY_SPLIT_TRAIN);
    for (int workers = 1; workers <= 3; workers++) {
        struct counted counted = {0};
        struct cvy_statistics s = {.progress = {count, &counted}};
        assert_int_equal(cvy_statistics_take(dataset, workers, &s), CVY_OK);
        /* means 0.5, 0.2, 0.4; of squares 0.5, 0.04, 0.16 */
        assert_true(fabs(s.mean[0] - 1.1 / 3) < 1e-12);
        assert_true(fabs(s.std[0] - sqrt(0.7 / 3 - 1.21 / 9)) < 1e-12);
        assert_true(s.n == 3 && s.n_bad == 0 && s.channels == 1);
        assert_true(counted.n_done == 3 && counted.n_calls == 3);
        assert_true(s.shorter_side[1] == 3 && s.smallest[0] == 2 && s.largest[1] == 2);
        assert_true(s.per_class[0] == 1 && s.per_class[1] == 2);
        cvy_statistics_free(&s);
    }
    cvy_dataset_free(dataset);
}

/* Colours, whose values lie one behind the other; a file that is missing counts nowhere. */
static void colours_of_files(void **state) {
    (void)state;
    static const char *const paths[] = {"tests/data/images/rgb.png", "absent.png",
                                        "tests/data/images/444.jpg"};
    double sum[3] = {0}, squares[3] = {0};
    for (int k = 0; k < 3; k += 2) {
        char path[64], *rgb;
        size_t n;
        snprintf(path, sizeof path, "%s.rgb", paths[k]);
        assert_int_equal(cvy_read_file(path, 1 << 20, &rgb, &n), CVY_OK);
        for (size_t i = 0; i < n; i++) {
            const double x = (double)(uint8_t)rgb[i] / 255;
            sum[i % 3] += x * 3 / (double)n / 2;
            squares[i % 3] += x * x * 3 / (double)n / 2;
        }
        free(rgb);
    }
    struct cvy_dataset *dataset;
    struct cvy_statistics s = {0};
    assert_int_equal(cvy_dataset_open_files(paths, 3, &dataset), CVY_OK);
    assert_int_equal(cvy_statistics_take(dataset, 2, &s), CVY_OK);
    assert_true(s.n == 3 && s.n_bad == 1 && s.channels == 3 && !s.per_class);
    for (int c = 0; c < 3; c++) {
        assert_true(fabs(s.mean[c] - sum[c]) < 5e-3); /* JPEG's pixels may differ by a level */
        assert_true(fabs(s.std[c] - sqrt(squares[c] - sum[c] * sum[c])) < 5e-3);
    }
    cvy_statistics_free(&s);
    cvy_dataset_free(dataset);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(levels_and_classes), TEST(colours_of_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
