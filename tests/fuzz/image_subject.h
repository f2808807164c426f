/* Any bytes as an image file: decoded or refused, twice into memory of different contents. What decodes has the
 * promised shape, the same pixels both times (so each was written), and can be resized; so do parts of it, at full size
 * and smaller. Each decoder has a target of its own, that it gets its time: jpeg_fuzz.c, png_fuzz.c, webp_fuzz.c. */
#ifndef CVY_TESTS_FUZZ_IMAGE_SUBJECT_H
#define CVY_TESTS_FUZZ_IMAGE_SUBJECT_H

#include "data/decode.h"
#include "data/resize.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PIXELS = 1 << 16 /* keeps one input quick */, MAX_BYTES = 3 * MAX_PIXELS };

static void require(bool is_so) {
    if (!is_so)
        abort();
}

static cvy_status decode_over(const uint8_t *bytes, size_t n_bytes, int filling,
                              const struct cvy_image_part *part, struct cvy_image *image) {
    require(cvy_image_reshape(image, 3, 1, MAX_PIXELS, CVY_U8, CVY_NHWC) == CVY_OK);
    memset(image->pixels, filling, MAX_BYTES);
    return cvy_decode(bytes, n_bytes, MAX_PIXELS, false, part, image);
}

/* A part with a corner where the size says. */
static struct cvy_box choose(void *context, int64_t height, int64_t width) {
    (void)context;
    struct cvy_box box = {.top = width % height, .left = height % width};
    box.height = (height - box.top + 1) / 2;
    box.width = (width - box.left + 1) / 2;
    return box;
}

static void decode_part(const uint8_t *bytes, size_t n_bytes, int64_t size) {
    const struct cvy_image_part part = {.choose = choose, .height = size, .width = size};
    struct cvy_image image = {0}, again = {0};
    cvy_status status = decode_over(bytes, n_bytes, 0x55, &part, &image);
    require(decode_over(bytes, n_bytes, 0xAA, &part, &again) == status);
    if (status == CVY_OK) {
        require(image.height == again.height && image.width == again.width);
        require(memcmp(image.pixels, again.pixels, (size_t)(3 * image.height * image.width)) == 0);
    }
    cvy_image_free(&again);
    cvy_image_free(&image);
}

static void try_image(const uint8_t *bytes, size_t n_bytes) {
    struct cvy_image image = {0}, again = {0}, resized = {0};
    struct cvy_resizer resizer = {0};
    cvy_status status = decode_over(bytes, n_bytes, 0x55, NULL, &image);
    require(decode_over(bytes, n_bytes, 0xAA, NULL, &again) == status);
    if (status == CVY_OK) {
        size_t n = (size_t)(image.channels * image.height * image.width);
        require(image.channels == 3 && n <= MAX_BYTES);
        require(image.height == again.height && image.width == again.width);
        require(memcmp(image.pixels, again.pixels, n) == 0);
        require(cvy_resize(&resizer, &image, 7, 5, &resized) == CVY_OK);
    }
    decode_part(bytes, n_bytes, MAX_PIXELS);
    decode_part(bytes, n_bytes, 3);
    cvy_resizer_free(&resizer);
    cvy_image_free(&resized);
    cvy_image_free(&again);
    cvy_image_free(&image);
}

#endif
