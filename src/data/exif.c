/* A JPEG file is a chain of segments; EXIF is one of the kind APP1, and holds a small TIFF file, of which the first
   directory has the tag. Every offset comes from the file and is checked. */
#include "data/exif.h"

#include <stdbool.h>
#include <string.h>

enum {
    SOI = 0xD8,
    APP1 = 0xE1,
    SOS = 0xDA, /* from here on there are pixels */
    EOI = 0xD9,
    TAG_ORIENTATION = 0x0112,
    TYPE_SHORT = 3,
    ENTRY_BYTES = 12, /* tag, type, count, value */
};

struct tiff {
    const uint8_t *bytes;
    size_t n;
    bool is_big_endian;
};

static uint32_t number(const struct tiff *tiff, size_t at, int n_bytes) {
    uint32_t value = 0;
    for (int k = 0; k < n_bytes; k++)
        value |= (uint32_t)tiff->bytes[at + (size_t)k] << 8 * (tiff->is_big_endian ? n_bytes - 1 - k : k);
    return value;
}

static int orientation_of_tiff(const uint8_t *bytes, size_t n) {
    struct tiff tiff = {bytes, n, .is_big_endian = n >= 2 && bytes[0] == 'M'};
    if (n < 8 || (memcmp(bytes, "MM\0*", 4) != 0 && memcmp(bytes, "II*\0", 4) != 0))
        return 1;
    size_t directory = number(&tiff, 4, 4);
    if (directory > n - 2 || directory < 8)
        return 1;
    size_t n_entries = number(&tiff, directory, 2), room = (n - directory - 2) / ENTRY_BYTES;
    for (size_t i = 0; i < n_entries && i < room; i++) {
        size_t entry = directory + 2 + i * ENTRY_BYTES;
        if (number(&tiff, entry, 2) != TAG_ORIENTATION || number(&tiff, entry + 2, 2) != TYPE_SHORT)
            continue;
        uint32_t value = number(&tiff, entry + 8, 2);
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

int cvy_exif_orientation(const void *jpeg, size_t n_bytes) {
    static const char name[] = "Exif\0"; /* and the zero that ends the text */
    const uint8_t *bytes = jpeg;
    size_t at = 2;
    if (n_bytes < 4 || bytes[0] != 0xFF || bytes[1] != SOI)
        return 1;
    while (at + 4 <= n_bytes && bytes[at] == 0xFF) {
        int kind = bytes[at + 1];
        size_t n = (size_t)bytes[at + 2] << 8 | bytes[at + 3]; /* with these two bytes, without the mark */
        if (kind == 0xFF) {                                    /* filling between segments */
            at++;
            continue;
        }
        if (kind == SOS || kind == EOI || n < 2 || n > n_bytes - at - 2)
            return 1;
        if (kind == APP1 && n >= 2 + sizeof name && memcmp(bytes + at + 4, name, sizeof name) == 0)
            return orientation_of_tiff(bytes + at + 4 + sizeof name, n - 2 - sizeof name);
        at += 2 + n;
    }
    return 1;
}

struct
    turn { /* from the stored image to the upright one: rows and columns change places, then are mirrored */
    bool is_swapped, is_flipped_y, is_flipped_x; /* the last two as seen in the stored image */
};

static struct turn turn_of(int orientation) {
    return (struct turn){
        .is_swapped = cvy_orient_swaps(orientation),
        .is_flipped_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7,
        .is_flipped_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
    };
}

struct cvy_box cvy_orient_back(const struct cvy_box *upright, int orientation, int64_t height,
                               int64_t width) {
    const struct turn turn = turn_of(orientation);
    struct cvy_box box = *upright;
    if (turn.is_swapped)
        box = (struct cvy_box){upright->left, upright->top, upright->width, upright->height};
    if (turn.is_flipped_y)
        box.top = height - box.top - box.height;
    if (turn.is_flipped_x)
        box.left = width - box.left - box.width;
    return box;
}

cvy_status cvy_orient(struct cvy_image *image, int orientation) {
    const struct turn turn = turn_of(orientation);
    const bool is_swapped = turn.is_swapped;
    const int64_t height = image->height, width = image->width, channels = image->channels;
    struct cvy_image turned = {0};
    if (orientation == 1)
        return CVY_OK;
    CVY_TRY(cvy_image_reshape(&turned, channels, is_swapped ? width : height, is_swapped ? height : width,
                              CVY_U8, CVY_NHWC));
    const uint8_t *from = image->pixels;
    uint8_t *to = turned.pixels;
    for (int64_t y = 0; y < turned.height; y++) {
        for (int64_t x = 0; x < turned.width; x++, to += channels) {
            int64_t from_y = is_swapped ? x : y, from_x = is_swapped ? y : x;
            from_y = turn.is_flipped_y ? height - 1 - from_y : from_y;
            from_x = turn.is_flipped_x ? width - 1 - from_x : from_x;
            memcpy(to, from + (from_y * width + from_x) * channels, (size_t)channels);
        }
    }
    cvy_image_free(image);
    *image = turned;
    return CVY_OK;
}
