/* Contact sheets: pictures and letters where they belong, and the file decodes to the same pixels. */
#include "data/sheet.h"

#include "data/decode.h"
#include "data/encode_png.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { HEIGHT = 40, WIDTH = 48, SCALE = 2, N = 5, COLUMNS = 3 };

static uint8_t level_at(const struct cvy_image *image, int64_t y, int64_t x, int c) {
    return ((const uint8_t *)image->pixels)[(y * image->width + x) * 3 + c];
}

static struct cvy_sheet make(void) {
    static uint8_t rgb[HEIGHT * WIDTH * 3];
    struct cvy_sheet sheet;
    assert_int_equal(cvy_sheet_new(N, COLUMNS, HEIGHT, WIDTH, &sheet), CVY_OK);
    for (int k = 0; k < N; k++) {
        for (size_t i = 0; i < sizeof rgb; i++)
            rgb[i] = (uint8_t)(30 * k + (int)(i % 3));
        cvy_sheet_put(&sheet, k, rgb, k == 4 ? "I" : "a name that is longer than its picture");
    }
    return sheet;
}

static void pictures_stand_in_rows(void **state) {
    (void)state;
    struct cvy_sheet sheet = make();
    const int64_t cell_height = (sheet.image.height - 4) / 2, cell_width = (sheet.image.width - 4) / COLUMNS;
    assert_int_equal(sheet.scale, SCALE);
    for (int k = 0; k < N; k++) {
        int64_t top = 4 + k / COLUMNS * cell_height, left = 4 + k % COLUMNS * cell_width;
        for (int c = 0; c < 3; c++) {
            assert_int_equal(level_at(&sheet.image, top, left, c), 30 * k + c);
            assert_int_equal(level_at(&sheet.image, top + HEIGHT * SCALE - 1, left + WIDTH * SCALE - 1, c),
                             30 * k + c);
            assert_int_equal(level_at(&sheet.image, top - 1, left, c), 255);
            assert_int_equal(level_at(&sheet.image, top, left + WIDTH * SCALE, c), 255);
        }
    }
    assert_int_equal(level_at(&sheet.image, 4 + cell_height, 4 + 2 * cell_width, 0),
                     255); /* there is no sixth */
    /* the letter I: its bar, its stem, and white beside that */
    int64_t line = 4 + cell_height + HEIGHT * SCALE + 2, left = 4 + cell_width;
    assert_int_equal(level_at(&sheet.image, line, left, 0), 0);
    assert_int_equal(level_at(&sheet.image, line + 5, left + 2, 0), 0);
    assert_int_equal(level_at(&sheet.image, line + 5, left, 0), 255);
    assert_int_equal(level_at(&sheet.image, line + 5, left + 8, 0), 255);
    cvy_image_free(&sheet.image);
}

static void the_file_holds_the_pixels(void **state) {
    (void)state;
    struct cvy_sheet sheet = make();
    struct cvy_image again = {0};
    void *bytes;
    size_t n_bytes;
    assert_int_equal(cvy_encode_png(&sheet.image, &bytes, &n_bytes), CVY_OK);
    assert_int_equal(cvy_decode(bytes, n_bytes, CVY_MAX_PIXELS, false, NULL, &again), CVY_OK);
    assert_true(again.height == sheet.image.height && again.width == sheet.image.width);
    assert_memory_equal(again.pixels, sheet.image.pixels, (size_t)(3 * again.height * again.width));
    free(bytes);
    cvy_image_free(&again);
    cvy_image_free(&sheet.image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_stand_in_rows),
        cmocka_unit_test(the_file_holds_the_pixels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
