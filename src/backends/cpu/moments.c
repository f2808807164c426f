/* See moments.h. */
#include "backends/cpu/moments.h"

/* sum += x, or (x - mean)^2 */
CPU_INLINE void add_value(const cpu_real *x, const cpu_v16 *mean, const int width, cpu_v16 *sum) {
    cpu_v16 v;
    cpu_load(&v, x, width);
    if (mean) {
        v -= *mean;
        v *= v;
    }
    *sum += v;
}

CPU_INLINE void sum_values(const cpu_real *x, const struct cpu_chunk *c, const cpu_v16 *mean, const int width,
                           cpu_v16 *out) {
    cpu_v16 sum[4] = {{0}}, tail = {0}; /* four, so that additions need not wait for each other */
    for (int64_t n = 0; n < c->n_images; n++, x += c->image_step) {
        int64_t i = 0;
        for (; i + 4 <= c->n_vectors; i += 4) {
            for (int k = 0; k < 4; k++)
                add_value(x + (i + k) * c->step, mean, width, &sum[k]);
        }
        for (; i < c->n_vectors; i++)
            add_value(x + i * c->step, mean, width, &sum[0]);
        if (c->tail)
            add_value(x + i * c->step, mean, c->tail, &tail);
    }
    cpu_trim(&tail, c->tail);
    *out = (sum[0] + sum[1]) + (sum[2] + sum[3]) + tail;
}

CPU_INLINE void moments_of(const cpu_real *x, const struct cpu_chunk *c, const int width, bool is_plain,
                           cpu_v16 *mean, cpu_v16 *m2) {
    sum_values(x, c, NULL, width, mean);
    if (is_plain)
        *mean = (cpu_v16){0} + cpu_fold(mean);
    *mean /= (float)c->n_pixels;
    sum_values(x, c, mean, width, m2);
    if (is_plain)
        *m2 = (cpu_v16){0} + cpu_fold(m2);
}

CPU_VECTOR static void norm_moments(const cpu_real *x, const struct cpu_chunk *c, bool is_plain,
                                    cpu_v16 *mean, cpu_v16 *m2) {
    if (c->width == CPU_LANES)
        moments_of(x, c, CPU_LANES, is_plain, mean, m2);
    else
        moments_of(x, c, c->width, is_plain, mean, m2);
}

/* Chan, Golub, LeVeque 1979: with d = mean_b - mean_a,
   mean = mean_a + d n_b / n, M2 = M2_a + M2_b + d^2 n_a n_b / n. */
void cpu_moments_merge(struct cpu_moments *a, const struct cpu_moments *b, int n_channels) {
    double n = a->n + b->n, share = b->n / n;
    if (b->n == 0)
        return;
    for (int l = 0; l < n_channels; l++) {
        double d = b->mean[l] - a->mean[l];
        a->mean[l] += d * share;
        a->m2[l] += b->m2[l] + d * d * a->n * share;
    }
    a->n = n;
}

static void add_chunk(const cpu_real *x, const struct cpu_view *v, const struct cpu_chunk *c, int n_channels,
                      struct cpu_moments *out) {
    cpu_v16 mean, m2;
    struct cpu_moments chunk = {.n = (double)c->n_pixels};
    norm_moments(x + c->at, c, v->lanes == 1, &mean, &m2);
    for (int l = 0; l < n_channels; l++) {
        chunk.mean[l] = (double)mean[l];
        chunk.m2[l] = (double)m2[l];
    }
    cpu_moments_merge(out, &chunk, n_channels);
}

void cpu_moments_cell(const cpu_real *x, const struct cpu_view *v, const struct cpu_cell *cell,
                      struct cpu_moments *out) {
    const int64_t first = cell->first_block;
    for (int64_t b = first; b < cell->end_block; b++)
        out[b] = (struct cpu_moments){0};
    struct cpu_walk walk = cpu_walk_start(v, cell, first);
    for (struct cpu_chunk c; cpu_walk_next(&walk, &c);) {
        for (int64_t b = first; b < cell->end_block; b++) {
            struct cpu_chunk here = cpu_chunk_in(v, c, first, b);
            add_chunk(x, v, &here, cpu_n_channels(v, b), &out[b]);
        }
    }
}
