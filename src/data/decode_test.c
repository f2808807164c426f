/* Decoders against the pixels that Pillow reads (tests/data/make_images), and against broken files. */
#include "data/decode.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define IMAGES "tests/data/images/"

struct sample {
    const char *name;
    int64_t height, width;
    int tolerance; /* between versions of libjpeg; PNG is exact */
};

static const struct sample samples[] = {
    {"444.jpg", 17, 23, 2},    {"420.jpg", 17, 23, 2},         {"progressive.jpg", 17, 23, 2},
    {"grey.jpg", 17, 23, 2},   {"cmyk.jpg", 17, 23, 2},        {"ycck.jpg", 17, 23, 2},
    {"rgb.png", 17, 23, 0},    {"rgba.png", 17, 23, 0},        {"palette.png", 17, 23, 0},
    {"grey.png", 17, 23, 0},   {"transparent.png", 17, 23, 0}, {"bits.png", 17, 23, 0},
    {"rgb16.png", 17, 23, 0},  {"grey_alpha.png", 17, 23, 0},  {"grey16.png", 17, 23, 0},
    {"lossy.webp", 17, 23, 2}, {"lossless.webp", 17, 23, 0},   {"alpha.webp", 17, 23, 0},
};

enum { N_SAMPLES = sizeof samples / sizeof *samples };

static char *load(const char *name, const char *suffix, size_t *n_bytes) {
    char path[256], *bytes;
    snprintf(path, sizeof path, IMAGES "%s%s", name, suffix);
    assert_int_equal(cvy_read_file(path, 1 << 20, &bytes, n_bytes), CVY_OK);
    return bytes;
}

static void decodes_what_pillow_does(void **state) {
    (void)state;
    struct cvy_image image = {0};
    for (int i = 0; i < N_SAMPLES; i++) {
        size_t n_bytes;
        char path[256];
        uint8_t *expected = (uint8_t *)load(samples[i].name, ".rgb", &n_bytes);
        snprintf(path, sizeof path, IMAGES "%s", samples[i].name);
        if (cvy_decode_file(path, false, NULL, &image) != CVY_OK)
            fail_msg("%s", cvy_error());
        assert_int_equal(image.channels, 3);
        assert_int_equal(image.height, samples[i].height);
        assert_int_equal(image.width, samples[i].width);
        assert_int_equal(n_bytes, 3 * image.height * image.width);
        for (size_t p = 0; p < n_bytes; p++) {
            int difference = ((uint8_t *)image.pixels)[p] - expected[p];
            if (abs(difference) > samples[i].tolerance)
                fail_msg("%s: byte %zu is off by %d", samples[i].name, p, difference);
        }
        free(expected);
    }
    cvy_image_free(&image);
}

/* Every file cut at every length is refused. Only the mark of the end itself may be missing (PNG: 12 bytes and
   the checksum before it; JPEG: 2 bytes), since then all pixels are there. */
static void refuses_cut_files(void **state) {
    (void)state;
    struct cvy_image image = {0};
    for (int i = 0; i < N_SAMPLES; i++) {
        size_t n_bytes;
        char *bytes = load(samples[i].name, "", &n_bytes);
        size_t n_end = strstr(samples[i].name, ".png") ? 16 : 2;
        for (size_t n = 0; n < n_bytes - n_end; n++) {
            char *cut = malloc(n + 1); /* of its own, so that a sanitizer sees a read past the end */
            memcpy(cut, bytes, n);
            if (cvy_decode(cut, n, CVY_MAX_PIXELS, false, NULL, &image) != CVY_ERR_DATA)
                fail_msg("%s cut to %zu of %zu bytes is accepted", samples[i].name, n, n_bytes);
            free(cut);
        }
        free(bytes);
    }
    cvy_image_free(&image);
}

static void expect_error(const void *bytes, size_t n_bytes, int64_t max_pixels, const char *part) {
    struct cvy_image image = {0};
    assert_int_equal(cvy_decode(bytes, n_bytes, max_pixels, false, NULL, &image), CVY_ERR_DATA);
    if (!strstr(cvy_error(), part))
        fail_msg("the error '%s' does not say '%s'", cvy_error(), part);
    cvy_image_free(&image);
}

static void says_what_a_file_is(void **state) {
    (void)state;
    expect_error("", 0, 100, "empty");
    expect_error("hello, world\nmore", 17, 100,
                 "is text, not a JPEG, PNG or WebP image (it begins with \"hello, world mor");
    expect_error("GIF89a..", 8, 100, "is a GIF image, convert it");
    expect_error("RIFF\1\2\3\4WEBPVP8 ", 16, 100, "is not a whole WebP image: it ends too early");
    expect_error("\1\2\3", 3, 100, "begins with the bytes 01 02 03)");
}

static void refuses_too_many_pixels(void **state) {
    (void)state;
    for (int i = 0; i < N_SAMPLES; i++) {
        size_t n_bytes;
        char *bytes = load(samples[i].name, "", &n_bytes);
        expect_error(bytes, n_bytes, 17 * 23 - 1, "23x17 pixels");
        free(bytes);
    }
}

static void refuses_a_wrong_checksum(void **state) {
    (void)state;
    size_t n_bytes;
    char *bytes = load("rgb.png", "", &n_bytes);
    char *body = memmem(bytes, n_bytes, "IDAT", 4);
    assert_non_null(body);
    body[20] ^= 1;
    expect_error(bytes, n_bytes, CVY_MAX_PIXELS, "is not a whole PNG image");
    free(bytes);
}

static void names_the_file(void **state) {
    (void)state;
    struct cvy_image image = {0};
    assert_int_equal(cvy_decode_file(IMAGES "absent.jpg", false, NULL, &image), CVY_ERR_DATA);
    assert_non_null(strstr(cvy_error(), IMAGES "absent.jpg: "));
    assert_int_equal(cvy_decode_file(IMAGES "rgb.png.rgb", false, NULL, &image), CVY_ERR_DATA);
    assert_non_null(strstr(cvy_error(), IMAGES "rgb.png.rgb: "));
    cvy_image_free(&image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_what_pillow_does), cmocka_unit_test(refuses_cut_files),
        cmocka_unit_test(says_what_a_file_is),      cmocka_unit_test(refuses_too_many_pixels),
        cmocka_unit_test(refuses_a_wrong_checksum), cmocka_unit_test(names_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
