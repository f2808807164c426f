/* Sums over the rows of a fold. A row is cut into chunks, which blocks sum up by themselves; what they leave, the
   partial sums, is put together in a second launch, in double precision. Where the cuts are, and so the order of all
   additions, is a function of the fold's size alone.

   A block works on a tile: one chunk of `lanes` rows at once. With one lane its threads are neighbours along a row;
   where the same element of neighbouring rows lies side by side (channels of an N,H,W,C tensor), the lanes are rows. */
#ifndef CONVOY_CUDA_FOLD_H
#define CONVOY_CUDA_FOLD_H

#include "functions.h"

#include <stdbool.h>
#include <stddef.h>

enum { CUDA_THREADS = 256, CUDA_WARP = 32 };
enum { CUDA_FOLD_ITEMS = 16 }; /* elements of a chunk that a thread takes */

struct cuda_fold {
    int64_t n, row; /* rows, elements of each */
    int lanes;      /* a power of two */
    int64_t chunk, chunks, tiles;
};

struct cuda_moments { /* of a row: how many, their mean, the sum of squared deviations from it */
    double n, mean, m2;
};

static inline struct cuda_fold cuda_fold_of(int64_t n, int64_t row, bool is_near) {
    struct cuda_fold f = {n, row, 1, 0, 0, 0};
    while (is_near && f.lanes < CUDA_WARP && f.lanes < n)
        f.lanes *= 2;
    f.chunk = CUDA_THREADS / f.lanes * CUDA_FOLD_ITEMS;
    f.chunks = row > f.chunk ? (row + f.chunk - 1) / f.chunk : 1;
    f.tiles = (n + f.lanes - 1) / f.lanes * f.chunks;
    return f;
}

/* partial: [n][chunks][CUDA_FOLD_SUMS]; none where one chunk is all. */
static inline size_t cuda_fold_bytes(const struct cuda_fold *f) {
    return f->chunks > 1 ? (size_t)(f->n * f->chunks) * CUDA_FOLD_SUMS * sizeof(float) : 0;
}

CUDA_BODY float *cuda_fold_partial(const struct cuda_fold *f, float *partial, int64_t row, int64_t chunk) {
    return partial + (row * f->chunks + chunk) * CUDA_FOLD_SUMS;
}

/* Elements of a chunk: the last one may be shorter. */
CUDA_BODY int64_t cuda_fold_elements(const struct cuda_fold *f, int64_t chunk) {
    int64_t left = f->row - chunk * f->chunk;
    return left < f->chunk ? left : f->chunk;
}

/* Sums of a row out of its chunks'. */
CUDA_BODY void cuda_fold_join(const struct cuda_fold *f, float *partial, int64_t row, struct cuda_team team,
                              double *sums) {
    double mine[CUDA_FOLD_SUMS] = {0, 0};
    for (int64_t c = team.lane; c < f->chunks; c += team.size) {
        const float *of_chunk = cuda_fold_partial(f, partial, row, c);
        for (int s = 0; s < CUDA_FOLD_SUMS; s++)
            mine[s] += (double)of_chunk[s];
    }
    for (int s = 0; s < CUDA_FOLD_SUMS; s++)
        sums[s] = cuda_team_sum(team, mine[s]);
}

/* Moments of a row out of its chunks', which are {mean, M2}:
   mean = sum n_c mean_c / n, M2 = sum (M2_c + n_c (mean_c - mean)^2). */
CUDA_BODY struct cuda_moments cuda_moments_join(const struct cuda_fold *f, float *partial, int64_t row,
                                                struct cuda_team team) {
    struct cuda_moments all = {(double)f->row, 0, 0};
    double sum = 0, m2 = 0;
    for (int64_t c = team.lane; c < f->chunks; c += team.size)
        sum += (double)cuda_fold_elements(f, c) * (double)cuda_fold_partial(f, partial, row, c)[0];
    all.mean = cuda_team_sum(team, sum) / all.n;
    for (int64_t c = team.lane; c < f->chunks; c += team.size) {
        const float *of_chunk = cuda_fold_partial(f, partial, row, c);
        double d = (double)of_chunk[0] - all.mean;
        m2 += (double)of_chunk[1] + (double)cuda_fold_elements(f, c) * d * d;
    }
    all.m2 = cuda_team_sum(team, m2);
    return all;
}

#endif
