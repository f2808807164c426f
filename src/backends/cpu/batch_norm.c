/* batch_norm in one or two passes: statistics (training only), then normalise, add the residual, apply the relu and
   leave its mask. Per block of channels, so that the second pass finds in cache what the first one read.
   Statistics: mean and sum of squared deviations of each chunk in two passes over cached data, then chunks merged
   in a fixed order by Chan's formula; never E[x^2] - E[x]^2. The padding of blocked layouts gets mean, scale and
   shift 0, so it stays 0. */
#include "ops/batch_norm.h"
#include "backends/cpu/grid.h"
#include "backends/cpu/kernels.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

struct moments { /* of the channels of one block */
    double n, mean[CPU_LANES], m2[CPU_LANES];
};

struct norm {
    struct cvy_kernel base;
    struct cvy_batch_norm_attrs attrs;
    struct cpu_view view;
    struct cpu_grid grid;
    int n_in;
    bool has_stats, has_apply; /* what the present pass does */
    struct moments *moments;   /* [image_part][block], in the workspace */
    /* of the present run; absent ones are NULL */
    const float *x, *weight, *bias, *running_mean, *running_var, *residual;
    float *y, *mean, *var, *stats;
    uint8_t *mask;
};

/* ---- statistics ---------------------------------------------------------------------------------- */

/* sum += x, or (x - mean)^2 */
CPU_INLINE void add_value(const float *x, const cpu_v16 *mean, const int width, cpu_v16 *sum) {
    cpu_v16 v;
    cpu_load(&v, x, width);
    if (mean) {
        v -= *mean;
        v *= v;
    }
    *sum += v;
}

CPU_INLINE void sum_values(const float *x, const struct cpu_chunk *c, const cpu_v16 *mean, const int width,
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

CPU_INLINE void moments_of(const float *x, const struct cpu_chunk *c, const int width, bool is_plain,
                           cpu_v16 *mean, cpu_v16 *m2) {
    sum_values(x, c, NULL, width, mean);
    if (is_plain)
        *mean = (cpu_v16){0} + cpu_fold(mean);
    *mean /= (float)c->n_pixels;
    sum_values(x, c, mean, width, m2);
    if (is_plain)
        *m2 = (cpu_v16){0} + cpu_fold(m2);
}

CPU_VECTOR static void norm_moments(const float *x, const struct cpu_chunk *c, bool is_plain, cpu_v16 *mean,
                                    cpu_v16 *m2) {
    if (c->width == CPU_LANES)
        moments_of(x, c, CPU_LANES, is_plain, mean, m2);
    else
        moments_of(x, c, c->width, is_plain, mean, m2);
}

/* Chan, Golub, LeVeque 1979: with d = mean_b - mean_a,
   mean = mean_a + d n_b / n, M2 = M2_a + M2_b + d^2 n_a n_b / n. */
static void merge(struct moments *a, double n_b, const double *mean_b, const double *m2_b, int n_channels) {
    double n = a->n + n_b, share = n_b / n;
    for (int l = 0; l < n_channels; l++) {
        double d = mean_b[l] - a->mean[l];
        a->mean[l] += d * share;
        a->m2[l] += m2_b[l] + d * d * a->n * share;
    }
    a->n = n;
}

static void block_moments(const struct norm *me, const struct cpu_cell *cell, int64_t block,
                          struct moments *out) {
    const struct cpu_view *v = &me->view;
    int n_channels = cpu_n_channels(v, block);
    *out = (struct moments){0};
    struct cpu_walk walk = cpu_walk_start(v, cell, block);
    for (struct cpu_chunk c; cpu_walk_next(&walk, &c);) {
        cpu_v16 mean, m2;
        double mean_d[CPU_LANES], m2_d[CPU_LANES];
        norm_moments(me->x + c.at, &c, v->lanes == 1, &mean, &m2);
        for (int l = 0; l < n_channels; l++) {
            mean_d[l] = (double)mean[l];
            m2_d[l] = (double)m2[l];
        }
        merge(out, (double)c.n_pixels, mean_d, m2_d, n_channels);
    }
}

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
    float *y = me->y + at;
    uint8_t *restrict mask = me->mask + at;
    for (int64_t i = 0; i < n && me->mask; i++)
        mask[i] = y[i] > 0;
    for (int64_t i = 0; i < n; i++) /* so written, NaN stays NaN */
        y[i] = y[i] <= 0 ? 0 : y[i];
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
    struct moments all = {0};
    for (int i = 0; i < me->grid.image_parts && me->attrs.training; i++) {
        const struct moments *m = &me->moments[i * v->n_blocks + block];
        merge(&all, m->n, m->mean, m->m2, n_channels);
    }
    for (int l = 0; l < n_channels; l++) {
        int64_t c = cpu_first_channel(v, block) + l;
        double mean = me->attrs.training ? all.mean[l] : (double)me->running_mean[c];
        double var = me->attrs.training ? all.m2[l] / all.n : (double)me->running_var[c];
        means[l] = (float)mean;
        scales[l] = (float)((double)me->weight[c] / sqrt(var + me->attrs.eps));
        shifts[l] = me->bias[c];
        if (cell->image_part == 0)
            put_channel(me, c, mean, var, all.m2[l]);
    }
    cpu_per_lane(v, means, n_channels, &out->mean);
    cpu_per_lane(v, scales, n_channels, &out->scale);
    cpu_per_lane(v, shifts, n_channels, &out->shift);
}

static void apply_block(const struct norm *me, const struct cpu_cell *cell, int64_t block) {
    struct affine f;
    settle_block(me, cell, block, &f);
    if (!me->y) /* nobody reads it: the layer runs for its statistics alone */
        return;
    struct cpu_walk walk = cpu_walk_start(&me->view, cell, block);
    for (struct cpu_chunk c; cpu_walk_next(&walk, &c);)
        norm_apply(me, &f, &c);
}

/* ---- slots --------------------------------------------------------------------------------------- */

static void run_part(void *context, int part, int n_parts) {
    const struct norm *me = context;
    struct cpu_cell cell = cpu_grid_cell(&me->grid, &me->view, part);
    (void)n_parts;
    for (int64_t b = cell.first_block; b < cell.end_block; b++) {
        if (me->has_stats)
            block_moments(me, &cell, b, &me->moments[cell.image_part * me->view.n_blocks + b]);
        if (me->has_apply)
            apply_block(me, &cell, b);
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
    const struct cvy_operand_spec *x = &call->in[CVY_BATCH_NORM_X];
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = &cpu_kernel_batch_norm;
    me->attrs = *(const struct cvy_batch_norm_attrs *)call->attrs;
    me->n_in = call->n_in;
    if (!cpu_layout_view(x->layout, &x->desc, &me->view)) {
        free(me);
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s: batch_norm has no loops for this layout", device->name);
    }
    me->grid = cpu_grid_make(&me->view, device->spec.n_threads);
    *scratch_bytes = (size_t)(me->grid.image_parts * me->view.n_blocks) * sizeof(struct moments);
    *out = &me->base;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

const struct cvy_kernel_impl cpu_kernel_batch_norm = {
    .op = "batch_norm",
    .supports = cpu_supports_f32,
    .choose = choose,
    .prepare = prepare,
    .run = run,
    .release = release,
};
