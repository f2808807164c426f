/* The buffer of a decoded image. Invariant: `pixels` holds `capacity` bytes, whatever the shape says, and
   CVY_IMAGE_SLACK more: loops may read and write whole vectors at its end. */
#include "data/data.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

cvy_status cvy_image_reshape(struct cvy_image *image, int64_t channels, int64_t height, int64_t width,
                             cvy_dtype dtype, cvy_image_order order) {
    const int64_t size[] = {channels, height, width};
    size_t n_bytes = dtype == CVY_U8 ? 1 : sizeof(float);
    for (int i = 0; i < 3; i++) {
        if (size[i] < 0 || __builtin_mul_overflow(n_bytes, (size_t)size[i], &n_bytes))
            return CVY_FAIL(CVY_ERR_DATA, "an image of %lldx%lldx%lld is impossible", (long long)size[0],
                            (long long)size[1], (long long)size[2]);
    }
    if (n_bytes > image->capacity || !image->pixels) {
        cvy_image_free(image);
        image->pixels = n_bytes > SIZE_MAX - CVY_IMAGE_SLACK ? NULL : malloc(n_bytes + CVY_IMAGE_SLACK);
        if (!image->pixels)
            return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for an image of %zu bytes", n_bytes);
        image->capacity = n_bytes;
    }
    image->channels = channels;
    image->height = height;
    image->width = width;
    image->dtype = dtype;
    image->order = order;
    return CVY_OK;
}

void cvy_image_crop(struct cvy_image *image, const struct cvy_box *box) {
    const size_t pixel = (size_t)image->channels * (image->dtype == CVY_U8 ? 1 : sizeof(float));
    const size_t from_row = (size_t)image->width * pixel, to_row = (size_t)box->width * pixel;
    uint8_t *to = image->pixels;
    const uint8_t *from = to + (size_t)box->top * from_row + (size_t)box->left * pixel;
    for (int64_t y = 0; y < box->height; y++)
        memmove(to + (size_t)y * to_row, from + (size_t)y * from_row, to_row);
    image->height = box->height;
    image->width = box->width;
}

void cvy_image_take(struct cvy_image *image, const struct cvy_image_part *part) {
    struct cvy_box box = part->choose(part->context, image->height, image->width);
    cvy_image_crop(image, &box);
}

void cvy_image_free(struct cvy_image *image) {
    free(image->pixels);
    image->pixels = NULL;
    image->capacity = 0;
}
