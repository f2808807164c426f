/* Windows of pooling, along one axis and over an image, for the bodies of max_pool, avg_pool and their gradients.
   These work on strips: four channels of a pixel where they are innermost and their number allows it, else one element.
   dim: 0 channels; 1, 2 height and width of the large side (x, dx); 3, 4 of the small side (y, dy); by axis: 5, 6
   kernel, 7, 8 stride, 9, 10 padding, 11, 12 dilation; 13 enum pool_rule; 14: 1 when channels are innermost */
#ifndef CONVOY_CUDA_POOL_WINDOW_H
#define CONVOY_CUDA_POOL_WINDOW_H

#include "functions.h"

enum pool_rule {
    POOL_VALID,
    POOL_PADDED,
    POOL_ADAPTIVE
}; /* what counts in an average's divisor; adaptive bins */

struct pool_place { /* one element of a tensor */
    int64_t image, channel, at[2];
};

/* Element i of a tensor of height x width. */
CUDA_BODY struct pool_place pool_place_of(const struct cuda_args *a, int64_t i, int64_t height,
                                          int64_t width) {
    int64_t channels = a->dim[0], pixels = height * width;
    int64_t image = i / (channels * pixels), rest = i - image * channels * pixels;
    int64_t channel = a->dim[14] ? rest % channels : rest / pixels;
    int64_t pixel = a->dim[14] ? rest / channels : rest % pixels;
    struct pool_place place = {image, channel, {pixel / width, pixel % width}};
    return place;
}

/* Where pixel `pixel` of the same channel and image stands in a tensor of `pixels` pixels. */
CUDA_BODY int64_t pool_index(const struct cuda_args *a, const struct pool_place *place, int64_t pixels,
                             int64_t pixel) {
    int64_t channels = a->dim[0];
    return a->dim[14] ? (place->image * pixels + pixel) * channels + place->channel
                      : (place->image * channels + place->channel) * pixels + pixel;
}

/* Elements of a strip among the next n. */
CUDA_BODY int pool_lanes(const struct cuda_args *a, int n) {
    return n == CUDA_QUAD && a->dim[14] && a->dim[0] % CUDA_QUAD == 0 ? CUDA_QUAD : 1;
}

struct __attribute__((aligned(16))) pool_winners { /* of a strip */
    int32_t at[CUDA_QUAD];
};

struct pool_span { /* positions first, first + step, … below end */
    int64_t first, end, step;
    int64_t divisor; /* what the axis contributes to an average's */
};

/* The window of position `out` along an axis, within the image. */
CUDA_BODY struct pool_span pool_window(const struct cuda_args *a, int axis, int64_t out) {
    int64_t in = a->dim[1 + axis], n_out = a->dim[3 + axis], padding = a->dim[9 + axis],
            step = a->dim[11 + axis];
    struct pool_span w;
    w.step = step;
    if (a->dim[13] == POOL_ADAPTIVE) {
        w.first = out * in / n_out;
        w.end = ((out + 1) * in + n_out - 1) / n_out;
        w.divisor = w.end - w.first;
        return w;
    }
    int64_t first = out * a->dim[7 + axis] - padding, end = first + (a->dim[5 + axis] - 1) * step + 1;
    int64_t padded = (end < in + padding ? end : in + padding) - first; /* what hangs over never counts */
    w.first = first >= 0 ? first : first + (step - 1 - first) / step * step;
    w.end = end < in ? end : in;
    w.divisor = a->dim[13] == POOL_PADDED ? padded : w.end - w.first;
    return w;
}

/* All positions of the small side whose windows may hold position `at` of the large one. */
CUDA_BODY struct pool_span pool_windows_at(const struct cuda_args *a, int axis, int64_t at) {
    int64_t in = a->dim[1 + axis], n_out = a->dim[3 + axis], stride = a->dim[7 + axis];
    struct pool_span w;
    w.step = 1;
    w.divisor = 1;
    if (a->dim[13] == POOL_ADAPTIVE) { /* out in / n_out < at + 1 and (out + 1) in / n_out > at */
        w.first = at * n_out / in;
        w.end = ((at + 1) * n_out + in - 1) / in;
    } else {
        int64_t late = at + a->dim[9 + axis], early = late - (a->dim[5 + axis] - 1) * a->dim[11 + axis];
        w.first = early > 0 ? (early + stride - 1) / stride : 0;
        w.end = late / stride + 1;
    }
    w.end = w.end < n_out ? w.end : n_out;
    return w;
}

#endif
