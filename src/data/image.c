/* The buffer of a decoded image. Invariant: `pixels` holds `capacity` bytes, whatever the shape says. */
#include "data/data.h"

#include <stdint.h>
#include <stdlib.h>

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
        image->pixels = malloc(n_bytes ? n_bytes : 1);
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

void cvy_image_free(struct cvy_image *image) {
    free(image->pixels);
    image->pixels = NULL;
    image->capacity = 0;
}
