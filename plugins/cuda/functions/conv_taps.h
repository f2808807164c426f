/* Where the taps of a convolution lie, images and weights in nhwc, for the bodies of conv_forward, conv_data and
   conv_weights. dim: 0 channels, 1, 2 height and width of x; 3 channels, 4, 5 height and width of y; by axis: 6, 7
   kernel, 8, 9 stride, 10, 11 padding, 12, 13 dilation; 14 groups */
#ifndef CONVOY_CUDA_CONV_TAPS_H
#define CONVOY_CUDA_CONV_TAPS_H

#include "functions.h"

/* The position of x that tap k of position `out` of y meets, along an axis; outside of x it is padding. */
CUDA_BODY int64_t conv_tap(const struct cuda_args *a, int axis, int64_t out, int64_t k) {
    return out * a->dim[8 + axis] - a->dim[10 + axis] + k * a->dim[12 + axis];
}

/* The position of y whose tap k meets position `in` of x, or -1. */
CUDA_BODY int64_t conv_tapped(const struct cuda_args *a, int axis, int64_t in, int64_t k) {
    int64_t from = in + a->dim[10 + axis] - k * a->dim[12 + axis], stride = a->dim[8 + axis];
    return from >= 0 && from % stride == 0 && from / stride < a->dim[4 + axis] ? from / stride : -1;
}

CUDA_BODY int64_t conv_ins(const struct cuda_args *a) { return a->dim[0] / a->dim[14]; }  /* of a group */
CUDA_BODY int64_t conv_outs(const struct cuda_args *a) { return a->dim[3] / a->dim[14]; } /* of a group */

/* Channel 0 of a pixel of x, of y; the first input channel of a tap of weights. */
CUDA_BODY int64_t conv_x(const struct cuda_args *a, int64_t n, int64_t h, int64_t w) {
    return ((n * a->dim[1] + h) * a->dim[2] + w) * a->dim[0];
}

CUDA_BODY int64_t conv_y(const struct cuda_args *a, int64_t n, int64_t p, int64_t q) {
    return ((n * a->dim[4] + p) * a->dim[5] + q) * a->dim[3];
}

CUDA_BODY int64_t conv_w(const struct cuda_args *a, int64_t o, int64_t k, int64_t l) {
    return ((o * a->dim[6] + k) * a->dim[7] + l) * conv_ins(a);
}

#endif
