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

/* ---- tiles ----------------------------------------------------------------------------------------- */

struct running { /* moments of the pixels of a chunk so far */
    cpu_v16 mean, m2;
};

/* The tile of n pixels joins n_before others: by Chan's formula, with the tile's values in registers. */
CPU_INLINE void join_tile(const cpu_real *x, int64_t step, const int n, float n_before, struct running *out) {
    cpu_v16 v[CPU_TILE], sum = {0}, m2 = {0}, mean, d;
    const float share = (float)n / (n_before + (float)n);
    for (int i = 0; i < n; i++) {
        cpu_load(&v[i], x + i * step, CPU_LANES);
        sum += v[i];
    }
    mean = sum * (1 / (float)n);
    for (int i = 0; i < n; i++) {
        d = v[i] - mean;
        m2 += d * d;
    }
    d = mean - out->mean;
    out->mean += d * share;
    out->m2 += m2 + d * d * (n_before * share);
}

CPU_VECTOR static void norm_moments_tiled(const cpu_real *x, const struct cpu_chunk *c, int64_t block_step,
                                          int n_blocks, struct running out[CPU_GROUP]) {
    int64_t n_before = 0;
    for (int b = 0; b < n_blocks; b++)
        out[b] = (struct running){{0}, {0}};
    for (int64_t n = 0; n < c->n_images; n++, x += c->image_step) {
        int64_t i = 0;
        for (; i + CPU_TILE <= c->n_vectors; i += CPU_TILE, n_before += CPU_TILE) {
            for (int b = 0; b < n_blocks; b++)
                join_tile(x + i * c->step + b * block_step, c->step, CPU_TILE, (float)n_before, &out[b]);
        }
        int n_left = (int)(c->n_vectors - i);
        for (int b = 0; b < n_blocks && n_left > 0; b++)
            join_tile(x + i * c->step + b * block_step, c->step, n_left, (float)n_before, &out[b]);
        n_before += n_left;
    }
}

static void add_tiled(const cpu_real *x, const struct cpu_view *v, const struct cpu_chunk *c,
                      const struct cpu_cell *cell, struct cpu_moments *out) {
    struct running parts[CPU_GROUP];
    const int n_blocks = (int)(cell->end_block - cell->first_block);
    norm_moments_tiled(x + c->at, c, v->block, n_blocks, parts);
    for (int b = 0; b < n_blocks; b++) {
        struct cpu_moments chunk = {.n = (double)c->n_pixels};
        CPU_EACH_LANE(l) chunk.mean[l] = (double)parts[b].mean[l];
        CPU_EACH_LANE(l) chunk.m2[l] = (double)parts[b].m2[l];
        cpu_moments_merge(&out[cell->first_block + b], &chunk, CPU_LANES);
    }
}

/* ---- cells ----------------------------------------------------------------------------------------- */

void cpu_moments_cell(const cpu_real *x, const struct cpu_view *v, const struct cpu_cell *cell,
                      struct cpu_moments *out) {
    const int64_t first = cell->first_block;
    for (int64_t b = first; b < cell->end_block; b++)
        out[b] = (struct cpu_moments){0};
    struct cpu_walk walk = cpu_walk_start(v, cell, first);
    for (struct cpu_chunk c; cpu_walk_next(&walk, &c);) {
        if (cpu_is_tiled(v)) {
            add_tiled(x, v, &c, cell, out);
            continue;
        }
        for (int64_t b = first; b < cell->end_block; b++) {
            struct cpu_chunk here = cpu_chunk_in(v, c, first, b);
            add_chunk(x, v, &here, cpu_n_channels(v, b), &out[b]);
        }
    }
}
