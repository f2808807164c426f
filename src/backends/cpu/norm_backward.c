/* See norm_backward.h. */
#include "backends/cpu/norm_backward.h"

/* ---- sums ---------------------------------------------------------------------------------------- */

CPU_INLINE void load_u(const struct cpu_norm_tensors *me, int64_t at, const int width, cpu_v16 *u) {
    cpu_load(u, me->dy + at, width);
    if (me->mask)
        cpu_where_mask(u, me->mask + at, width);
}

CPU_INLINE void add_value(const struct cpu_norm_tensors *me, int64_t at, const cpu_v16 *mean, const int width,
                          cpu_v16 *sum_u, cpu_v16 *sum_ud) {
    cpu_v16 u, x;
    load_u(me, at, width, &u); /* lanes past the width have u = 0, so they add nothing */
    cpu_load(&x, me->x + at, width);
    *sum_u += u;
    *sum_ud += u * (x - *mean);
}

CPU_INLINE void sum_vectors(const struct cpu_norm_tensors *me, const struct cpu_chunk *c, const cpu_v16 *mean,
                            const int width, cpu_v16 *sum_u, cpu_v16 *sum_ud) {
    cpu_v16 su[4] = {{0}}, sd[4] = {{0}}; /* four, so that additions need not wait for each other */
    for (int64_t n = 0; n < c->n_images; n++) {
        int64_t i = 0, at = c->at + n * c->image_step;
        for (; i + 4 <= c->n_vectors; i += 4) {
            for (int k = 0; k < 4; k++)
                add_value(me, at + (i + k) * c->step, mean, width, &su[k], &sd[k]);
        }
        for (; i < c->n_vectors; i++)
            add_value(me, at + i * c->step, mean, width, &su[0], &sd[0]);
        if (c->tail)
            add_value(me, at + i * c->step, mean, c->tail, &su[1], &sd[1]);
    }
    *sum_u = (su[0] + su[1]) + (su[2] + su[3]);
    *sum_ud = (sd[0] + sd[1]) + (sd[2] + sd[3]);
}

CPU_VECTOR static void norm_backward_sums(const struct cpu_norm_tensors *me, const struct cpu_chunk *c,
                                          const cpu_v16 *mean, cpu_v16 *sum_u, cpu_v16 *sum_ud) {
    struct cpu_norm_tensors here = *me; /* the compiler knows that no store changes these copies */
    cpu_v16 mean_here = *mean;
    if (c->width == CPU_LANES)
        sum_vectors(&here, c, &mean_here, CPU_LANES, sum_u, sum_ud);
    else
        sum_vectors(&here, c, &mean_here, c->width, sum_u, sum_ud);
    if (me->is_plain) {
        *sum_u = (cpu_v16){0} + cpu_fold(sum_u);
        *sum_ud = (cpu_v16){0} + cpu_fold(sum_ud);
    }
}

struct running { /* sums of the pixels of a chunk so far */
    cpu_v16 mean, u, ud;
};

/* u and x - mean of one vector */
CPU_INLINE void load_pair(const struct cpu_norm_tensors *me, int64_t at, const cpu_v16 *mean,
                          const bool has_mask, cpu_v16 *u, cpu_v16 *d) {
    cpu_load(u, me->dy + at, CPU_LANES);
    if (has_mask)
        cpu_where_mask_whole(u, me->mask + at);
    cpu_load(d, me->x + at, CPU_LANES);
    *d -= *mean;
}

/* n neighbouring pixels of one block */
CPU_INLINE void sum_tile(const struct cpu_norm_tensors *me, int64_t at, int64_t step, const int n,
                         const bool has_mask, struct running *out) {
    cpu_v16 su[2] = {{0}}, sd[2] = {{0}}; /* two, so that additions need not wait for each other */
    for (int i = 0; i < n; i++) {
        cpu_v16 u, d;
        load_pair(me, at + i * step, &out->mean, has_mask, &u, &d);
        su[i % 2] += u;
        sd[i % 2] += u * d;
    }
    out->u += su[0] + su[1];
    out->ud += sd[0] + sd[1];
}

CPU_INLINE void sum_tiles(const struct cpu_norm_tensors *me, const struct cpu_chunk *c, int64_t block_step,
                          int n_blocks, const bool has_mask, struct running *out) {
    for (int64_t n = 0; n < c->n_images; n++) {
        int64_t i = 0, at = c->at + n * c->image_step;
        for (; i + CPU_TILE <= c->n_vectors; i += CPU_TILE, at += CPU_TILE * c->step) {
            for (int b = 0; b < n_blocks; b++)
                sum_tile(me, at + b * block_step, c->step, CPU_TILE, has_mask, &out[b]);
        }
        for (int b = 0; b < n_blocks; b++)
            sum_tile(me, at + b * block_step, c->step, (int)(c->n_vectors - i), has_mask, &out[b]);
    }
}

CPU_VECTOR static void norm_backward_sums_tiled(const struct cpu_norm_tensors *me, const struct cpu_chunk *c,
                                                int64_t block_step, int n_blocks, struct running *out) {
    struct cpu_norm_tensors here = *me;
    if (here.mask)
        sum_tiles(&here, c, block_step, n_blocks, true, out);
    else
        sum_tiles(&here, c, block_step, n_blocks, false, out);
}

/* Adds a chunk's sums to those of the cell's blocks. */
static void add_tiled(const struct cpu_norm_tensors *me, const float *means, const struct cpu_view *v,
                      const struct cpu_cell *cell, const struct cpu_chunk *c, struct cpu_norm_sums *out) {
    const int64_t first = cell->first_block;
    struct running parts[CPU_GROUP] = {{{0}, {0}, {0}}};
    for (int64_t b = first; b < cell->end_block; b++)
        cpu_per_lane(v, means + cpu_first_channel(v, b), cpu_n_channels(v, b), &parts[b - first].mean);
    norm_backward_sums_tiled(me, c, v->block, (int)(cell->end_block - first), parts);
    for (int64_t b = first; b < cell->end_block; b++) {
        cpu_add_lanes(out[b].u, &parts[b - first].u);
        cpu_add_lanes(out[b].ud, &parts[b - first].ud);
    }
}

void cpu_norm_sums_cell(const struct cpu_norm_tensors *tensors, const float *means, const struct cpu_view *v,
                        const struct cpu_cell *cell, struct cpu_norm_sums *out) {
    const int64_t first = cell->first_block;
    for (int64_t b = first; b < cell->end_block; b++)
        out[b] = (struct cpu_norm_sums){0};
    struct cpu_walk walk = cpu_walk_start(v, cell, first);
    for (struct cpu_chunk c; cpu_walk_next(&walk, &c);) {
        if (cpu_is_tiled(v)) {
            add_tiled(tensors, means, v, cell, &c, out);
            continue;
        }
        for (int64_t b = first; b < cell->end_block; b++) {
            struct cpu_chunk here = cpu_chunk_in(v, c, first, b);
            int n_channels = cpu_n_channels(v, b);
            cpu_v16 mean, u, ud;
            cpu_per_lane(v, means + cpu_first_channel(v, b), n_channels, &mean);
            norm_backward_sums(tensors, &here, &mean, &u, &ud);
            for (int l = 0; l < n_channels; l++) {
                out[b].u[l] += (double)u[l];
                out[b].ud[l] += (double)ud[l];
            }
        }
    }
}

/* ---- dx ------------------------------------------------------------------------------------------ */

CPU_INLINE void apply_vector(const struct cpu_norm_tensors *me, const struct cpu_norm_slope *s, int64_t at,
                             const int width) {
    cpu_v16 u, x, dx;
    load_u(me, at, width, &u);
    cpu_load(&x, me->x + at, width);
    dx = s->gain * u - s->offset - s->tilt * (x - s->mean);
    if (me->dresidual)
        cpu_store(me->dresidual + at, &u, width);
    if (me->dx)
        cpu_store(me->dx + at, &dx, width);
}

CPU_INLINE void apply_vectors(const struct cpu_norm_tensors *me, const struct cpu_norm_slope *s,
                              const struct cpu_chunk *c, const int width) {
    for (int64_t n = 0; n < c->n_images; n++) {
        int64_t at = c->at + n * c->image_step;
        for (int64_t i = 0; i < c->n_vectors; i++, at += c->step)
            apply_vector(me, s, at, width);
        if (c->tail)
            apply_vector(me, s, at, c->tail);
    }
}

CPU_VECTOR static void norm_backward_apply(const struct cpu_norm_tensors *me, const struct cpu_norm_slope *s,
                                           const struct cpu_chunk *c) {
    struct cpu_norm_tensors here = *me; /* the compiler knows that no store changes these copies */
    struct cpu_norm_slope s_here = *s;
    if (c->width == CPU_LANES)
        apply_vectors(&here, &s_here, c, CPU_LANES);
    else
        apply_vectors(&here, &s_here, c, c->width);
}

CPU_INLINE void apply_tile(const struct cpu_norm_tensors *me, const struct cpu_norm_slope *s, int64_t at,
                           int64_t step, const int n, const bool has_mask) {
    const struct cpu_norm_slope s_here = *s;
    for (int i = 0; i < n; i++, at += step) {
        cpu_v16 u, d, dx;
        load_pair(me, at, &s_here.mean, has_mask, &u, &d);
        dx = s_here.gain * u - s_here.offset - s_here.tilt * d;
        if (me->dresidual)
            cpu_store_whole(me->dresidual + at, &u);
        if (me->dx)
            cpu_store_whole(me->dx + at, &dx);
    }
}

CPU_INLINE void apply_tiles(const struct cpu_norm_tensors *me, const struct cpu_norm_slope *s, int n_blocks,
                            int64_t block_step, const struct cpu_chunk *c, const bool has_mask) {
    for (int64_t n = 0; n < c->n_images; n++) {
        int64_t i = 0, at = c->at + n * c->image_step;
        for (; i + CPU_TILE <= c->n_vectors; i += CPU_TILE, at += CPU_TILE * c->step) {
            for (int b = 0; b < n_blocks; b++)
                apply_tile(me, &s[b], at + b * block_step, c->step, CPU_TILE, has_mask);
        }
        for (int b = 0; b < n_blocks; b++)
            apply_tile(me, &s[b], at + b * block_step, c->step, (int)(c->n_vectors - i), has_mask);
    }
}

CPU_VECTOR static void norm_backward_apply_tiled(const struct cpu_norm_tensors *me,
                                                 const struct cpu_norm_slope *s, int n_blocks,
                                                 int64_t block_step, const struct cpu_chunk *c) {
    struct cpu_norm_tensors here = *me;
    if (here.mask)
        apply_tiles(&here, s, n_blocks, block_step, c, true);
    else
        apply_tiles(&here, s, n_blocks, block_step, c, false);
}

void cpu_norm_slope_cell(const struct cpu_norm_tensors *tensors, const struct cpu_norm_slope *slopes,
                         const struct cpu_view *v, const struct cpu_cell *cell) {
    const int64_t first = cell->first_block;
    struct cpu_walk walk = cpu_walk_start(v, cell, first);
    for (struct cpu_chunk c; cpu_walk_next(&walk, &c);) {
        if (cpu_is_tiled(v)) {
            norm_backward_apply_tiled(tensors, slopes, (int)(cell->end_block - first), v->block, &c);
            continue;
        }
        for (int64_t b = first; b < cell->end_block; b++) {
            struct cpu_chunk here = cpu_chunk_in(v, c, first, b);
            norm_backward_apply(tensors, &slopes[b - first], &here);
        }
    }
}

/* ---- what kernels share ---------------------------------------------------------------------------------- */

void cpu_norm_sums_join(const struct cpu_norm_sums *sums, const struct cpu_view *v, int image_parts,
                        int64_t block, struct cpu_norm_sums *out) {
    *out = (struct cpu_norm_sums){0};
    for (int i = 0; i < image_parts; i++) {
        const struct cpu_norm_sums *part = &sums[i * v->n_blocks + block];
        for (int l = 0; l < cpu_n_channels(v, block); l++) {
            out->u[l] += part->u[l];
            out->ud[l] += part->ud[l];
        }
    }
}

void cpu_norm_slope_make(const struct cpu_norm_sums *sums, double m, const struct cpu_norm_channels *channels,
                         const struct cpu_view *v, int64_t block, struct cpu_norm_slope *out) {
    int n_channels = cpu_n_channels(v, block);
    int64_t first = cpu_first_channel(v, block);
    float gains[CPU_LANES], offsets[CPU_LANES], tilts[CPU_LANES];
    for (int l = 0; l < n_channels; l++) {
        double invstd = 1 / sqrt((double)channels->var[first + l] + channels->eps);
        double gain = (double)channels->weight[first + l] * invstd;
        gains[l] = (float)gain;
        offsets[l] = m > 0 ? (float)(gain * sums->u[l] / m) : 0;
        tilts[l] = m > 0 ? (float)(gain * invstd * invstd * sums->ud[l] / m) : 0;
    }
    cpu_per_lane(v, gains, n_channels, &out->gain);
    cpu_per_lane(v, offsets, n_channels, &out->offset);
    cpu_per_lane(v, tilts, n_channels, &out->tilt);
    cpu_per_lane(v, channels->mean + first, n_channels, &out->mean);
}

cvy_status cpu_norm_backward_choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cpu_choose_view(call, 1);
    return CVY_OK;
}
