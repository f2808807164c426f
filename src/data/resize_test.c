/* Resizing against Pillow's pixels (tests/data/make_images): the same bits. */
#include "data/resize.h"

#include "base/file.h"
#include "data/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define IMAGES "tests/data/images/"

static void resizes_as_pillow_does(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{6, 8}, {9, 40}, {30, 23}, {17, 11}, {50, 61}};
    struct cvy_image image = {0}, resized = {0};
    struct cvy_resizer resizer = {0};
    assert_int_equal(cvy_decode_file(IMAGES "rgb.png", false, NULL, &image), CVY_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char path[256], *expected;
        size_t n_bytes;
        snprintf(path, sizeof path, IMAGES "rgb_%dx%d.rgb", (int)sizes[i][0], (int)sizes[i][1]);
        assert_int_equal(cvy_read_file(path, 1 << 20, &expected, &n_bytes), CVY_OK);
        assert_int_equal(cvy_resize(&resizer, &image, sizes[i][0], sizes[i][1], &resized), CVY_OK);
        assert_int_equal(resized.height, sizes[i][0]);
        assert_int_equal(resized.width, sizes[i][1]);
        assert_int_equal(n_bytes, 3 * sizes[i][0] * sizes[i][1]);
        assert_memory_equal(resized.pixels, expected, n_bytes);
        free(expected);
    }
    cvy_resizer_free(&resizer);
    cvy_image_free(&image);
    cvy_image_free(&resized);
}

static void the_same_size_is_a_copy(void **state) {
    (void)state;
    struct cvy_image image = {0}, resized = {0};
    struct cvy_resizer resizer = {0};
    assert_int_equal(cvy_decode_file(IMAGES "rgb.png", false, NULL, &image), CVY_OK);
    assert_int_equal(cvy_resize(&resizer, &image, image.height, image.width, &resized), CVY_OK);
    assert_memory_equal(resized.pixels, image.pixels, (size_t)(3 * image.height * image.width));
    cvy_resizer_free(&resizer);
    cvy_image_free(&image);
    cvy_image_free(&resized);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resizes_as_pillow_does),
        cmocka_unit_test(the_same_size_is_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
