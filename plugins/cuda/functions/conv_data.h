/* dx = the sum of dy w over the taps that meet this element and the output channels of its group.
   in: dy, w; dim: conv_taps.h */
#include "conv_taps.h"

CUDA_BODY void conv_data_map(const struct cuda_args *a, int64_t i) {
    int64_t c = i % a->dim[0], w = i / a->dim[0] % a->dim[2], h = i / a->dim[0] / a->dim[2] % a->dim[1];
    int64_t n = i / a->dim[0] / a->dim[2] / a->dim[1], group = c / conv_ins(a), first = group * conv_outs(a);
    float sum = 0;
    for (int64_t k = 0; k < a->dim[6]; k++) {
        int64_t p = conv_tapped(a, 0, h, k);
        for (int64_t l = 0; l < a->dim[7] && p >= 0; l++) {
            int64_t q = conv_tapped(a, 1, w, l);
            if (q < 0)
                continue;
            int64_t y = conv_y(a, n, p, q) + first, in = c - group * conv_ins(a);
            for (int64_t o = 0; o < conv_outs(a); o++)
                sum += cuda_load(a, 0, y + o) * cuda_load(a, 1, conv_w(a, first + o, k, l) + in);
        }
    }
    cuda_store(a, 0, i, sum);
}
