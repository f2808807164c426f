/* y = the sum of x w over the taps and the input channels of the group, plus bias[o] when there is one.
   in: x, w, bias (may be NULL); dim: conv_taps.h */
#include "conv_taps.h"

CUDA_BODY void conv_forward_map(const struct cuda_args *a, int64_t i) {
    int64_t o = i % a->dim[3], q = i / a->dim[3] % a->dim[5], p = i / a->dim[3] / a->dim[5] % a->dim[4];
    int64_t n = i / a->dim[3] / a->dim[5] / a->dim[4], first = o / conv_outs(a) * conv_ins(a);
    float sum = a->in[2] ? cuda_load(a, 2, o) : 0;
    for (int64_t k = 0; k < a->dim[6]; k++) {
        int64_t h = conv_tap(a, 0, p, k);
        for (int64_t l = 0; l < a->dim[7] && h >= 0 && h < a->dim[1]; l++) {
            int64_t w = conv_tap(a, 1, q, l);
            if (w < 0 || w >= a->dim[2])
                continue;
            int64_t x = conv_x(a, n, h, w) + first, weight = conv_w(a, o, k, l);
            for (int64_t c = 0; c < conv_ins(a); c++)
                sum += cuda_load(a, 0, x + c) * cuda_load(a, 1, weight + c);
        }
    }
    cuda_store(a, 0, i, sum);
}
