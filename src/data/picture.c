/* See picture.h. */
#include "data/picture.h"

#include <math.h>

void cvy_picture_rgb(const cvy_batch *batch, int64_t i, uint8_t *rgb) {
    const int64_t n = batch->height * batch->width, n_all = n * batch->channels;
    const int64_t channel = batch->order == CVY_NHWC ? 1 : n,
                  pixel = batch->order == CVY_NHWC ? batch->channels : 1;
    const uint8_t *bytes = (const uint8_t *)batch->images + i * n_all;
    const float *floats = (const float *)batch->images + i * n_all;
    float least = INFINITY, most = -INFINITY;
    for (int64_t k = 0; batch->dtype == CVY_F32 && k < n_all; k++) {
        least = fminf(least, floats[k]);
        most = fmaxf(most, floats[k]);
    }
    for (int64_t k = 0; k < 3 * n; k++) {
        int64_t c = batch->channels < 3 ? 0 : k % 3, at = k / 3 * pixel + c * channel;
        rgb[k] = batch->dtype == CVY_U8 ? bytes[at]
                 : most > least         ? (uint8_t)((floats[at] - least) / (most - least) * 255)
                                        : 128;
    }
}
