/* EXIF segments made here, in both byte orders, sound and broken; and what each orientation does to an image. */
#include "data/exif.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
    N_BYTES = 2 + 4 + 6 + 8 + 2 + 2 * 12 + 4
}; /* start, segment, name, TIFF header, two entries, next directory */

/* A JPEG file's beginning with EXIF, which says `value`. */
static void make(uint8_t out[N_BYTES], bool is_big_endian, int value) {
    static const uint8_t big[] = {0xFF, 0xD8, 0xFF, 0xE1, 0,   N_BYTES - 4, 'E', 'x', 'i', 'f', 0,
                                  0,    'M',  'M',  0,    '*', 0,           0,   0,   8,   0,   2,
                                  0x01, 0x0F, 0,    2,    0,   0,           0,   1,   'X', 0,   0,
                                  0,    0x01, 0x12, 0,    3,   0,           0,   0,   1};
    static const uint8_t little[] = {
        0xFF, 0xD8, 0xFF, 0xE1, 0, N_BYTES - 4, 'E', 'x', 'i', 'f', 0, 0, 'I', 'I',  '*',  0, 8, 0, 0, 0, 2,
        0,    0x0F, 0x01, 2,    0, 1,           0,   0,   0,   'X', 0, 0, 0,   0x12, 0x01, 3, 0, 1, 0, 0, 0};
    memset(out, 0, N_BYTES);
    memcpy(out, is_big_endian ? big : little, sizeof big);
    out[sizeof big + (is_big_endian ? 1 : 0)] = (uint8_t)value;
}

/* In memory of its own, so that a sanitizer sees a read past the end. */
static int orientation_of(const uint8_t *bytes, size_t n_bytes) {
    uint8_t *copy = malloc(n_bytes ? n_bytes : 1);
    memcpy(copy, bytes, n_bytes);
    int found = cvy_exif_orientation(copy, n_bytes);
    free(copy);
    return found;
}

static void the_tag_is_found(void **state) {
    (void)state;
    static const uint8_t other[] = {0xFF, 0xD8, 0xFF, 0xE0, 0, 16, 'J', 'F', 'I', 'F'};
    uint8_t bytes[N_BYTES], later[N_BYTES + 18]; /* behind another segment, of 16 bytes */
    for (int value = 0; value <= 9; value++) {
        for (int is_big_endian = 0; is_big_endian < 2; is_big_endian++) {
            int expected = value >= 1 && value <= 8 ? value : 1;
            make(bytes, is_big_endian, value);
            assert_int_equal(orientation_of(bytes, sizeof bytes), expected);
            memset(later, 0, 20);
            memcpy(later, other, sizeof other);
            memcpy(later + 20, bytes + 2, N_BYTES - 2);
            assert_int_equal(orientation_of(later, sizeof later), expected);
        }
    }
}

/* Cut anywhere and with any byte changed, it is read or not, within its bounds. */
static void broken_segments_say_nothing(void **state) {
    (void)state;
    uint8_t bytes[N_BYTES];
    for (size_t i = 0; i < N_BYTES; i++) {
        make(bytes, i % 2, 6);
        assert_int_equal(orientation_of(bytes, i), 1); /* the segment says that it is longer */
        for (int value = 0; value < 256; value++) {
            bytes[i] = (uint8_t)value;
            int found = orientation_of(bytes, sizeof bytes);
            assert_true(found >= 1 && found <= 8);
        }
    }
    assert_int_equal(orientation_of((const uint8_t *)"\xFF\xD8\xFF\xDA\x00\x02\xFF\xE1", 8), 1);
}

static void images_are_turned_upright(void **state) {
    (void)state;
    /* a b c   as its eight orientations show it when it is stored so that it must be turned back */
    /* d e f */
    static const char *const upright[] = {NULL,     "abcdef", "cbafed", "fedcba", "defabc",
                                          "adbecf", "daebfc", "fcebda", "cfbead"};
    for (int orientation = 1; orientation <= 8; orientation++) {
        struct cvy_image image = {0};
        assert_int_equal(cvy_image_reshape(&image, 1, 2, 3, CVY_U8, CVY_NHWC), CVY_OK);
        memcpy(image.pixels, "abcdef", 6);
        assert_int_equal(cvy_orient(&image, orientation), CVY_OK);
        assert_memory_equal(image.pixels, upright[orientation], 6);
        assert_int_equal(image.height, orientation >= 5 ? 3 : 2);
        assert_int_equal(image.width, orientation >= 5 ? 2 : 3);
        cvy_image_free(&image);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tag_is_found),
        cmocka_unit_test(broken_segments_say_nothing),
        cmocka_unit_test(images_are_turned_upright),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
