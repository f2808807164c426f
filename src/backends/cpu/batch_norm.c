/* batch_norm in one or two passes: statistics (training only), then normalise, add the residual, apply the relu and
   leave its mask. Per block of channels, so that the second pass finds in cache what the first one read.
   The padding of blocked layouts gets mean, scale and shift 0, so it stays 0. */
#include "ops/batch_norm.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/moments.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

struct norm {
    struct cvy_kernel base;
    struct cvy_batch_norm_attrs attrs;
    struct cpu_view view;
    struct cpu_grid grid;
    int n_in;
    bool has_stats, has_apply;   /* what the present pass does */
    struct cpu_moments *moments; /* [image_part][block], in the workspace */
    /* of the present run; absent ones are NULL */
    const cpu_real *x, *residual;
    cpu_real *y;
    const float *weight, *bias, *running_mean, *running_var;
    float *mean, *var, *stats;
    uint8_t *mask;
};

/* ---- normalising --------------------------------------------------------------------------------- */

struct affine { /* y = (x - mean) scale + shift, per lane */
    cpu_v16 mean, scale, shift;
};

enum {
    STRIP = 64
}; /* vectors that are normalised before the relu passes over them: they are still in cache */

CPU_INLINE void affine_vector(const struct norm *me, const struct affine *f, int64_t at, const int width) {
    cpu_v16 y, r;
    cpu_load(&y, me->x + at, width);
    y = (y - f->mean) * f->scale + f->shift;
    if (me->residual) {
        cpu_load(&r, me->residual + at, width);
        y += r;
    }
    cpu_store(me->y + at, &y, width);
}

/* The relu of n neighbours, and its mask. */
CPU_INLINE void relu_span(const struct norm *me, int64_t at, int64_t n) {
    cpu_real *y = me->y + at;
    uint8_t *restrict mask = me->mask ? me->mask + at : NULL;
    for (int64_t i = 0; i < n && mask; i++)
        mask[i] = cpu_real_is_positive(y[i]);
    for (int64_t i = 0; i < n; i++) /* so written, NaN stays NaN */
        y[i] = cpu_real_relu(y[i]);
}

CPU_INLINE void apply_vectors(const struct norm *me, const struct affine *f, int64_t at, int64_t n,
                              int64_t step, const int width) {
    for (int64_t i = 0; i < n; i++)
        affine_vector(me, f, at + i * step, width);
    if (!me->attrs.relu)
        return;
    if (step == width) {
        relu_span(me, at, n * step);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        relu_span(me, at + i * step, width);
}

CPU_VECTOR static void norm_apply(const struct norm *me, const struct affine *f, const struct cpu_chunk *c) {
    struct norm here = *me; /* the compiler knows that no store changes these copies */
    struct affine f_here = *f;
    for (int64_t n = 0; n < c->n_images; n++) {
        int64_t at = c->at + n * c->image_step;
        for (int64_t i = 0; i < c->n_vectors; i += STRIP) {
            int64_t n_vectors = c->n_vectors - i < STRIP ? c->n_vectors - i : STRIP;
            if (c->width == CPU_LANES)
                apply_vectors(&here, &f_here, at + i * c->step, n_vectors, c->step, CPU_LANES);
            else
                apply_vectors(&here, &f_here, at + i * c->step, n_vectors, c->step, c->width);
        }
        if (c->tail)
            apply_vectors(&here, &f_here, at + c->n_vectors * c->step, 1, c->tail, c->tail);
    }
}

/* n neighbouring pixels of one block */
CPU_INLINE void apply_tile(const struct norm *me, const struct affine *f, int64_t at, int64_t step,
                           const int n, const bool has_residual, const bool has_relu) {
    const struct affine f_here = *f;
    for (int i = 0; i < n; i++, at += step) {
        cpu_v16 y, r;
        cpu_load(&y, me->x + at, CPU_LANES);
        y = (y - f_here.mean) * f_here.scale + f_here.shift;
        if (has_residual) {
            cpu_load(&r, me->residual + at, CPU_LANES);
            y += r;
        }
        if (has_relu)
            cpu_relu_whole(&y, me->mask ? me->mask + at : NULL);
        cpu_store_whole(me->y + at, &y);
    }
}

CPU_INLINE void apply_tiles(const struct norm *me, const struct affine *f, int n_blocks,
                            const struct cpu_chunk *c, const bool has_residual, const bool has_relu) {
    const int64_t block_step = me->view.block;
    for (int64_t n = 0; n < c->n_images; n++) {
        int64_t at = c->at + n * c->image_step, i = 0;
        for (; i + CPU_TILE <= c->n_vectors; i += CPU_TILE, at += CPU_TILE * c->step) {
            for (int b = 0; b < n_blocks; b++)
                apply_tile(me, &f[b], at + b * block_step, c->step, CPU_TILE, has_residual, has_relu);
        }
        for (int b = 0; b < n_blocks; b++)
            apply_tile(me, &f[b], at + b * block_step, c->step, (int)(c->n_vectors - i), has_residual,
                       has_relu);
    }
}

CPU_VECTOR static void norm_apply_tiled(const struct norm *me, const struct affine *f, int n_blocks,
                                        const struct cpu_chunk *c) {
    struct norm here = *me; /* the compiler knows that no store changes these copies */
    if (here.attrs.relu && here.residual)
        apply_tiles(&here, f, n_blocks, c, true, true);
    else if (here.attrs.relu)
        apply_tiles(&here, f, n_blocks, c, false, true);
    else if (here.residual)
        apply_tiles(&here, f, n_blocks, c, true, false);
    else
        apply_tiles(&here, f, n_blocks, c, false, false);
}

/* Statistics of one channel, into the outputs that are there. */
static void put_channel(const struct norm *me, int64_t c, double mean, double var, double m2) {
    double images = (double)me->view.n, m = images * (double)me->view.pixels;
    bool has_stats = me->attrs.training && m > 1;
    if (me->mean)
        me->mean[c] = (float)mean;
    if (me->var)
        me->var[c] = (float)var;
    if (me->stats) {
        me->stats[c] = has_stats ? (float)(images * mean) : 0;
        me->stats[me->view.channels + c] = has_stats ? (float)(images * m2 / (m - 1)) : 0;
        if (c == 0)
            me->stats[2 * me->view.channels] = has_stats ? (float)images : 0;
    }
}

/* The affine map of a block; the part that has the first images writes the statistics. */
static void settle_block(const struct norm *me, const struct cpu_cell *cell, int64_t block,
                         struct affine *out) {
    const struct cpu_view *v = &me->view;
    int n_channels = cpu_n_channels(v, block);
    float means[CPU_LANES], scales[CPU_LANES], shifts[CPU_LANES];
    struct cpu_moments all = {0};
    for (int i = 0; i < me->grid.image_parts && me->attrs.training; i++) {
        const struct cpu_moments *m = &me->moments[i * v->n_blocks + block];
        cpu_moments_merge(&all, m, n_channels);
    }
    for (int l = 0; l < n_channels; l++) {
        int64_t c = cpu_first_channel(v, block) + l;
        double mean = me->attrs.training ? all.mean[l] : (double)me->running_mean[c];
        /* rounded, as it is given out: who normalises by that gets the same bits (src/pass/recompute.c) */
        float var = me->attrs.training ? (float)(all.m2[l] / all.n) : me->running_var[c];
        means[l] = (float)mean;
        scales[l] = (float)((double)me->weight[c] / sqrt((double)var + me->attrs.eps));
        shifts[l] = me->bias[c];
        if (cell->image_part == 0)
            put_channel(me, c, mean, (double)var, all.m2[l]);
    }
    cpu_per_lane(v, means, n_channels, &out->mean);
    cpu_per_lane(v, scales, n_channels, &out->scale);
    cpu_per_lane(v, shifts, n_channels, &out->shift);
}

static void apply_cell(const struct norm *me, const struct cpu_cell *cell) {
    const int64_t first = cell->first_block;
    struct affine f[CPU_GROUP];
    for (int64_t b = first; b < cell->end_block; b++)
        settle_block(me, cell, b, &f[b - first]);
    if (!me->y) /* nobody reads it: the layer runs for its statistics alone */
        return;
    struct cpu_walk walk = cpu_walk_start(&me->view, cell, first);
    for (struct cpu_chunk c; cpu_walk_next(&walk, &c);) {
        if (cpu_is_tiled(&me->view)) {
            norm_apply_tiled(me, f, (int)(cell->end_block - first), &c);
            continue;
        }
        for (int64_t b = first; b < cell->end_block; b++) {
            struct cpu_chunk here = cpu_chunk_in(&me->view, c, first, b);
            norm_apply(me, &f[b - first], &here);
        }
    }
}

/* ---- slots --------------------------------------------------------------------------------------- */

static void run_part(void *context, int part, int n_parts) {
    const struct norm *me = context;
    struct cpu_cell cell = cpu_grid_cell(&me->grid, &me->view, part);
    (void)n_parts;
    for (struct cpu_cell p = cell; cpu_cell_group(&p, &cell, &me->view); p.first_block = p.end_block) {
        if (me->has_stats)
            cpu_moments_cell(me->x, &me->view, &p, &me->moments[cell.image_part * me->view.n_blocks]);
        if (me->has_apply)
            apply_cell(me, &p);
    }
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct norm *me = (struct norm *)kernel;
    me->x = in[CVY_BATCH_NORM_X];
    me->weight = in[CVY_BATCH_NORM_WEIGHT];
    me->bias = in[CVY_BATCH_NORM_BIAS];
    me->running_mean = in[CVY_BATCH_NORM_RUNNING_MEAN];
    me->running_var = in[CVY_BATCH_NORM_RUNNING_VAR];
    me->residual = me->n_in > CVY_BATCH_NORM_RESIDUAL ? in[CVY_BATCH_NORM_RESIDUAL] : NULL;
    me->y = out[CVY_BATCH_NORM_Y];
    me->mean = out[CVY_BATCH_NORM_MEAN];
    me->var = out[CVY_BATCH_NORM_VAR];
    me->stats = out[CVY_BATCH_NORM_STATS];
    me->mask = out[CVY_BATCH_NORM_MASK];
    me->moments = scratch;
    if (me->mask && !me->attrs.relu)
        me->mask[0] = 0;
    /* parts that share a block must all have their statistics before any goes on */
    bool is_split = me->attrs.training && me->grid.image_parts > 1;
    me->has_stats = me->attrs.training;
    me->has_apply = !is_split;
    cpu_team_run(cpu_grid_parts(&me->grid), run_part, me);
    if (is_split) {
        me->has_stats = false;
        me->has_apply = true;
        cpu_team_run(cpu_grid_parts(&me->grid), run_part, me);
    }
    return CVY_OK;
}

static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cpu_choose_view(call, CVY_BATCH_NORM_X);
    return CVY_OK;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    struct norm *me;
    struct cpu_view view;
    struct cpu_grid grid;
    CVY_TRY(cpu_grid_of(device, call, CVY_BATCH_NORM_X, &view, &grid));
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = &CPU_REAL(cpu_kernel_batch_norm);
    me->attrs = *(const struct cvy_batch_norm_attrs *)call->attrs;
    me->n_in = call->n_in;
    me->view = view;
    me->grid = grid;
    *scratch_bytes = (size_t)(me->grid.image_parts * me->view.n_blocks) * sizeof(struct cpu_moments);
    *out = &me->base;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

const struct cvy_kernel_impl CPU_REAL(cpu_kernel_batch_norm) = {
    .op = "batch_norm",
    .supports = CPU_SUPPORTS_REAL,
    .choose = choose,
    .prepare = prepare,
    .run = run,
    .release = release,
};
