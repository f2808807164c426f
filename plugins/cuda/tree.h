/* The tree over shards, rows 0 … n - 1: a node of 2^l rows is its first half joined with its second, cut at n. Row by
   row, as a binary counter carries: whenever row i + 1 is a multiple of 2^l, a node of 2^l rows is complete. Rows
   that came by a sum over devices have no -0, so + 0 for all. */
#ifndef CONVOY_CUDA_TREE_H
#define CONVOY_CUDA_TREE_H

#include "fold.h"

enum { CUDA_TREE_LEVELS = 24 };

/* Chan, Golub, LeVeque 1979: with d = mean_b - mean_a,
   mean = mean_a + d n_b / n, M2 = M2_a + M2_b + d^2 n_a n_b / n. An empty side changes nothing. */
CUDA_BODY struct cuda_moments cuda_moments_merge(struct cuda_moments a, struct cuda_moments b) {
    double n = a.n + b.n, d = b.mean - a.mean;
    struct cuda_moments all = {n, 0, 0};
    if (b.n == 0)
        return a;
    all.mean = a.mean + d * b.n / n;
    all.m2 = a.m2 + b.m2 + d * d * a.n * b.n / n;
    return all;
}

/* Of channel c in rows {mean [C], M2 [C], n, …} of `width` values. */
CUDA_BODY struct cuda_moments cuda_tree_moments(const float *rows, int64_t n, int64_t width, int64_t channels,
                                                int64_t c) {
    struct cuda_moments held[CUDA_TREE_LEVELS];
    int top = 0;
    held[0].n = held[0].mean = held[0].m2 = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *row = rows + i * width;
        struct cuda_moments node = {(double)row[2 * channels], (double)(row[c] + 0.0f),
                                    (double)row[channels + c]};
        for (int64_t carry = i + 1; carry % 2 == 0; carry /= 2)
            node = cuda_moments_merge(held[--top], node);
        held[top++] = node;
    }
    while (top > 1) {
        top--;
        held[top - 1] = cuda_moments_merge(held[top - 1], held[top]);
    }
    return held[0];
}

/* The sum of value k of the rows. */
CUDA_BODY double cuda_tree_sum(const float *rows, int64_t n, int64_t width, int64_t k) {
    double held[CUDA_TREE_LEVELS];
    int top = 0;
    held[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        double node = (double)(rows[i * width + k] + 0.0f);
        for (int64_t carry = i + 1; carry % 2 == 0; carry /= 2)
            node = held[--top] + node;
        held[top++] = node;
    }
    while (top > 1) {
        top--;
        held[top - 1] += held[top];
    }
    return held[0];
}

#endif
