/* dw = the sum of dy x over the images and the pixels of y; a row is an element of dw.
   in: dy, x; dim: conv_taps.h, 15 images */
#include "conv_taps.h"

CUDA_BODY void conv_weights_row(const struct cuda_args *a, int64_t row, struct cuda_team team) {
    int64_t in = row % conv_ins(a), l = row / conv_ins(a) % a->dim[7],
            k = row / conv_ins(a) / a->dim[7] % a->dim[6];
    int64_t o = row / conv_ins(a) / a->dim[7] / a->dim[6], c = o / conv_outs(a) * conv_ins(a) + in;
    int64_t width = a->dim[5], pixels = a->dim[4] * width;
    double sum = 0;
    for (int64_t i = team.lane; i < a->dim[15] * pixels; i += team.size) {
        int64_t n = i / pixels, p = i % pixels / width, q = i % width;
        int64_t h = conv_tap(a, 0, p, k), w = conv_tap(a, 1, q, l);
        if (h >= 0 && h < a->dim[1] && w >= 0 && w < a->dim[2])
            sum += (double)cuda_load(a, 0, conv_y(a, n, p, q) + o) *
                   (double)cuda_load(a, 1, conv_x(a, n, h, w) + c);
    }
    sum = cuda_team_sum(team, sum);
    if (team.lane == 0)
        cuda_store(a, 0, row, (float)sum);
}
