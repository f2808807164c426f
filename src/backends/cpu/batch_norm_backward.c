/* The gradient of batch_norm, in two passes: sums over each channel, then dx (and dresidual).
   With u = dy behind the relu and d = x - mean:
     dbias = sum u, dweight = invstd sum u d, dresidual = u,
     dx = k (u - [training] (dbias + d invstd dweight) / m), k = weight invstd. */
#include "backends/cpu/grid.h"
#include "backends/cpu/kernels.h"
#include "base/mem.h"
#include "ops/batch_norm.h"

#include <math.h>
#include <stdlib.h>

enum { DY, X, WEIGHT, MEAN, VAR, MASK }; /* inputs */
enum { DX, DWEIGHT, DBIAS, DRESIDUAL };  /* outputs */

struct sums { /* of the channels of one block */
    double u[CPU_LANES], ud[CPU_LANES];
};

struct norm_backward {
    struct cvy_kernel base;
    struct cvy_batch_norm_attrs attrs;
    struct cpu_view view;
    struct cpu_grid grid;
    int n_in;
    bool has_sums, has_apply; /* what the present pass does */
    struct sums *sums;        /* [image_part][block], in the workspace */
    /* of the present run; absent ones are NULL */
    const float *dy, *x, *weight, *mean, *var;
    const uint8_t *mask;
    float *dx, *dweight, *dbias, *dresidual;
};

/* ---- sums ---------------------------------------------------------------------------------------- */

CPU_INLINE void load_u(const struct norm_backward *me, int64_t at, const int width, cpu_v16 *u) {
    cpu_load(u, me->dy + at, width);
    if (me->mask)
        cpu_where_mask(u, me->mask + at, width);
}

CPU_INLINE void add_value(const struct norm_backward *me, int64_t at, const cpu_v16 *mean, const int width,
                          cpu_v16 *sum_u, cpu_v16 *sum_ud) {
    cpu_v16 u, x;
    load_u(me, at, width, &u); /* lanes past the width have u = 0, so they add nothing */
    cpu_load(&x, me->x + at, width);
    *sum_u += u;
    *sum_ud += u * (x - *mean);
}

CPU_INLINE void sum_vectors(const struct norm_backward *me, const struct cpu_chunk *c, const cpu_v16 *mean,
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

CPU_VECTOR static void norm_backward_sums(const struct norm_backward *me, const struct cpu_chunk *c,
                                          const cpu_v16 *mean, cpu_v16 *sum_u, cpu_v16 *sum_ud) {
    struct norm_backward here = *me; /* the compiler knows that no store changes these copies */
    cpu_v16 mean_here = *mean;
    if (c->width == CPU_LANES)
        sum_vectors(&here, c, &mean_here, CPU_LANES, sum_u, sum_ud);
    else
        sum_vectors(&here, c, &mean_here, c->width, sum_u, sum_ud);
    if (me->view.lanes == 1) {
        *sum_u = (cpu_v16){0} + cpu_fold(sum_u);
        *sum_ud = (cpu_v16){0} + cpu_fold(sum_ud);
    }
}

static void block_sums(const struct norm_backward *me, const struct cpu_cell *cell, int64_t block,
                       struct sums *out) {
    const struct cpu_view *v = &me->view;
    int n_channels = cpu_n_channels(v, block);
    cpu_v16 mean, u, ud;
    cpu_per_lane(v, me->mean + cpu_first_channel(v, block), n_channels, &mean);
    *out = (struct sums){0};
    struct cpu_walk walk = cpu_walk_start(v, cell, block);
    for (struct cpu_chunk c; cpu_walk_next(&walk, &c);) {
        norm_backward_sums(me, &c, &mean, &u, &ud);
        for (int l = 0; l < n_channels; l++) {
            out->u[l] += (double)u[l];
            out->ud[l] += (double)ud[l];
        }
    }
}

/* ---- dx ------------------------------------------------------------------------------------------ */

struct slope { /* dx = gain u - offset - tilt (x - mean), per lane */
    cpu_v16 gain, offset, tilt, mean;
};

CPU_INLINE void apply_vector(const struct norm_backward *me, const struct slope *s, int64_t at,
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

CPU_INLINE void apply_vectors(const struct norm_backward *me, const struct slope *s,
                              const struct cpu_chunk *c, const int width) {
    for (int64_t n = 0; n < c->n_images; n++) {
        int64_t at = c->at + n * c->image_step;
        for (int64_t i = 0; i < c->n_vectors; i++, at += c->step)
            apply_vector(me, s, at, width);
        if (c->tail)
            apply_vector(me, s, at, c->tail);
    }
}

CPU_VECTOR static void norm_backward_apply(const struct norm_backward *me, const struct slope *s,
                                           const struct cpu_chunk *c) {
    struct norm_backward here = *me; /* the compiler knows that no store changes these copies */
    struct slope s_here = *s;
    if (c->width == CPU_LANES)
        apply_vectors(&here, &s_here, c, CPU_LANES);
    else
        apply_vectors(&here, &s_here, c, c->width);
}

/* The slope of a block; the part that has the first images writes dweight and dbias. */
static void settle_block(const struct norm_backward *me, const struct cpu_cell *cell, int64_t block,
                         struct slope *out) {
    const struct cpu_view *v = &me->view;
    int n_channels = cpu_n_channels(v, block);
    double m = (double)(v->n * v->pixels);
    float gains[CPU_LANES], offsets[CPU_LANES], tilts[CPU_LANES];
    int64_t first = cpu_first_channel(v, block);
    for (int l = 0; l < n_channels; l++) {
        double u = 0, ud = 0, invstd = 1 / sqrt((double)me->var[first + l] + me->attrs.eps);
        for (int i = 0; i < me->grid.image_parts; i++) {
            u += me->sums[i * v->n_blocks + block].u[l];
            ud += me->sums[i * v->n_blocks + block].ud[l];
        }
        double gain = (double)me->weight[first + l] * invstd;
        gains[l] = (float)gain;
        offsets[l] = me->attrs.training ? (float)(gain * u / m) : 0;
        tilts[l] = me->attrs.training ? (float)(gain * invstd * invstd * ud / m) : 0;
        if (cell->image_part == 0 && me->dbias)
            me->dbias[first + l] = (float)u;
        if (cell->image_part == 0 && me->dweight)
            me->dweight[first + l] = (float)(ud * invstd);
    }
    cpu_per_lane(v, gains, n_channels, &out->gain);
    cpu_per_lane(v, offsets, n_channels, &out->offset);
    cpu_per_lane(v, tilts, n_channels, &out->tilt);
    cpu_per_lane(v, me->mean + first, n_channels, &out->mean);
}

static void apply_block(const struct norm_backward *me, const struct cpu_cell *cell, int64_t block) {
    struct slope s;
    settle_block(me, cell, block, &s);
    struct cpu_walk walk = cpu_walk_start(&me->view, cell, block);
    for (struct cpu_chunk c; cpu_walk_next(&walk, &c);)
        norm_backward_apply(me, &s, &c);
}

/* ---- slots --------------------------------------------------------------------------------------- */

static void run_part(void *context, int part, int n_parts) {
    const struct norm_backward *me = context;
    struct cpu_cell cell = cpu_grid_cell(&me->grid, &me->view, part);
    (void)n_parts;
    for (int64_t b = cell.first_block; b < cell.end_block; b++) {
        if (me->has_sums)
            block_sums(me, &cell, b, &me->sums[cell.image_part * me->view.n_blocks + b]);
        if (me->has_apply)
            apply_block(me, &cell, b);
    }
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct norm_backward *me = (struct norm_backward *)kernel;
    me->dy = in[DY];
    me->x = in[X];
    me->weight = in[WEIGHT];
    me->mean = in[MEAN];
    me->var = in[VAR];
    me->mask = me->attrs.relu && me->n_in > MASK ? in[MASK] : NULL;
    me->dx = out[DX];
    me->dweight = out[DWEIGHT];
    me->dbias = out[DBIAS];
    me->dresidual = out[DRESIDUAL];
    me->sums = scratch;
    /* parts that share a block must all have their sums before any goes on */
    bool is_split = me->grid.image_parts > 1;
    me->has_sums = true;
    me->has_apply = !is_split;
    cpu_team_run(cpu_grid_parts(&me->grid), run_part, me);
    if (is_split) {
        me->has_sums = false;
        me->has_apply = true;
        cpu_team_run(cpu_grid_parts(&me->grid), run_part, me);
    }
    return CVY_OK;
}

/* x was laid out by the forward pass, and its mask with it. */
static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cpu_choose_view(call, X);
    return CVY_OK;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    struct norm_backward *me;
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = &cpu_kernel_batch_norm_backward;
    me->attrs = *(const struct cvy_batch_norm_attrs *)call->attrs;
    me->n_in = call->n_in;
    if (!cpu_layout_view(call->in[X].layout, &call->in[X].desc, &me->view)) {
        free(me);
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s: batch_norm_backward has no loops for this layout",
                        device->name);
    }
    me->grid = cpu_grid_make(&me->view, device->spec.n_threads);
    *scratch_bytes = (size_t)(me->grid.image_parts * me->view.n_blocks) * sizeof(struct sums);
    *out = &me->base;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

const struct cvy_kernel_impl cpu_kernel_batch_norm_backward = {
    .op = "batch_norm_backward",
    .supports = cpu_supports_f32,
    .choose = choose,
    .prepare = prepare,
    .run = run,
    .release = release,
};
