/* MixUp and CutMix; ops/mix.c says what is drawn, and ops/mix.h what a draw is: share, pixels, top, left, bottom,
   right. */
#include "philox.h"

CUDA_BODY double mix_above_0(uint32_t number) { return (number + 1.0) * 0x1p-32; }

/* A gamma variate. */
CUDA_BODY double mix_gamma(uint64_t key, uint64_t step, double shape, int i, double u) {
    double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * d), v = 1;
    for (int t = 0; t < 64; t++) {
        uint32_t number[4];
        cuda_philox(key, step, 0, (uint64_t)(2 + 2 * t + i), number);
        double x =
            sqrt(-2 * log(mix_above_0(number[0]))) * cos(6.283185307179586476925 * number[1] * 0x1p-32);
        v = (1 + c * x) * (1 + c * x) * (1 + c * x);
        if (v > 0 && log(mix_above_0(number[2])) < x * x / 2 + d - d * v + d * log(v))
            break;
        v = 1;
    }
    return d * v * (shape < 1 ? pow(u, 1 / shape) : 1);
}

/* The update's draw.
   in: {seed, step, …} (i64); out: draw; dim: height, width, CVY_RNG_MIX; number: alpha of MixUp, of CutMix (or 0) */
CUDA_BODY void mix_draw_map(const struct cuda_args *a, int64_t i) {
    const int64_t *state = cuda_integers(a, 0);
    uint64_t key = (uint64_t)state[0] ^ (uint64_t)a->dim[2] << 56, step = (uint64_t)state[1];
    uint32_t number[4];
    cuda_philox(key, step, 0, 0, number);
    bool is_cut = a->number[1] > 0 && (a->number[0] == 0 || number[0] >= 1u << 31);
    double alpha = (double)a->number[is_cut ? 1 : 0], lambda = 1;
    int64_t first[2] = {0, 0}, end[2] = {0, 0};
    if (alpha > 0) {
        double own = mix_gamma(key, step, alpha, 0, mix_above_0(number[1])),
               other = mix_gamma(key, step, alpha, 1, mix_above_0(number[2]));
        lambda = own + other > 0 ? own / (own + other) : 1;
    }
    cuda_philox(key, step, 0, 1, number);
    for (int axis = 0; axis < 2 && is_cut; axis++) {
        int64_t half = (int64_t)(0.5 * sqrt(1 - lambda) * (double)a->dim[axis]);
        int64_t centre = (int64_t)((uint64_t)a->dim[axis] * number[axis] >> 32);
        first[axis] = centre < half ? 0 : centre - half;
        end[axis] = centre + half < a->dim[axis] ? centre + half : a->dim[axis];
    }
    double box = (double)(end[0] - first[0]) * (double)(end[1] - first[1]);
    double share = is_cut ? 1 - box / ((double)a->dim[0] * (double)a->dim[1]) : lambda;
    cuda_store(a, 0, 0, (float)share);
    cuda_store(a, 0, 1, is_cut ? 1 : (float)lambda);
    for (int axis = 0; axis < 2; axis++) {
        cuda_store(a, 0, 2 + axis, (float)first[axis]);
        cuda_store(a, 0, 4 + axis, (float)end[axis]);
    }
    (void)i; /* 0 */
}

/* The image before image n of the shard, of the first the last. */
CUDA_BODY int64_t mix_partner(int64_t n, int64_t images) { return (n + images - 1) % images; }

/* Of a plain tensor; y may not lie where x does.      in: x, draw; out: y; dim: images, image, height, width */
CUDA_BODY void mix_map(const struct cuda_args *a, int64_t i) {
    int64_t image = a->dim[1], row = i / a->dim[3] % a->dim[2], column = i % a->dim[3];
    float x = cuda_load(a, 0, i), own = cuda_load(a, 1, 1);
    float other = cuda_load(a, 0, mix_partner(i / image, a->dim[0]) * image + i % image);
    bool is_inside = (float)row >= cuda_load(a, 1, 2) && (float)row < cuda_load(a, 1, 4) &&
                     (float)column >= cuda_load(a, 1, 3) && (float)column < cuda_load(a, 1, 5);
    cuda_store(a, 0, i, is_inside ? other : own == 1 ? x : own * x + (1 - own) * other);
}

/* in: labels (i64), draw; out: targets; dim: images, K */
CUDA_BODY void mix_targets_map(const struct cuda_args *a, int64_t i) {
    int64_t classes = a->dim[1], n = i / classes, k = i % classes;
    int64_t own = cuda_integers(a, 0)[n], other = cuda_integers(a, 0)[mix_partner(n, a->dim[0])];
    bool are_classes = own >= 0 && own < classes && other >= 0 && other < classes;
    float share = cuda_load(a, 1, 0), target = (k == own ? share : 0) + (k == other ? 1 - share : 0);
    cuda_store(a, 0, i, are_classes ? target : NAN);
}
