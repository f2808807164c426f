/* layer_norm_backward: two passes over the channels of a tile of pixels, of which the first reads memory. With
   v = (x - mean) rstd and g = dy weight, the first sums g and g v over the channels of each pixel, dy v and dy over
   the pixels of each channel; the second makes dx = rstd (g - mean of g - v mean of g v), which may lie where dy does.
   Sums over pixels: single precision within a tile, double beyond; a part of the team has its own, added in order. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/pixels.h"
#include "base/mem.h"

#include <stdlib.h>

struct norm_backward {
    struct cvy_kernel base;
    struct cpu_pixels pixels;
    int n_parts;
    int64_t n_sums; /* channels, padding counted */
    double *sums;   /* [part][2][n_sums] of dy v and dy, in the workspace */
    /* of the present run; absent ones are NULL */
    const cpu_real *dy, *x;
    const float *weight, *mean, *rstd;
    cpu_real *dx;
    float *dweight, *dbias;
};

struct pixel_sums { /* of a tile's vectors: what is given, and the means of g and g v */
    cpu_v16 mean[CPU_TILE], rstd[CPU_TILE], g[CPU_TILE], gv[CPU_TILE];
};

struct channel_sums { /* of a strip */
    cpu_v16 weight, dyv, dy;
};

/* dy, and v. Lanes past the width have dy = 0. */
CPU_INLINE void load_pair(const struct norm_backward *me, const struct cpu_strip *s, int k, const int width,
                          const struct pixel_sums *t, cpu_v16 pair[2]) {
    cpu_load(&pair[0], me->dy + s->at + k * s->step, width);
    cpu_load(&pair[1], me->x + s->at + k * s->step, width);
    pair[1] = (pair[1] - t->mean[k]) * t->rstd[k];
}

CPU_INLINE void sum_vectors(const struct norm_backward *me, const struct cpu_strip *s, int first, int end,
                            const int width, struct channel_sums *c, struct pixel_sums *t) {
    for (int k = first; k < end; k++) {
        cpu_v16 pair[2];
        load_pair(me, s, k, width, t, pair);
        const cpu_v16 g = pair[0] * c->weight;
        t->g[k] += g;
        t->gv[k] += g * pair[1];
        c->dyv += pair[0] * pair[1];
        c->dy += pair[0];
    }
}

CPU_INLINE void slope_vectors(const struct norm_backward *me, const struct cpu_strip *s, int first, int end,
                              const int width, const cpu_v16 *weight, const struct pixel_sums *t) {
    for (int k = first; k < end; k++) {
        cpu_v16 pair[2], dx;
        load_pair(me, s, k, width, t, pair);
        dx = t->rstd[k] * (pair[0] * *weight - t->g[k] - pair[1] * t->gv[k]);
        if (width < CPU_LANES)
            cpu_trim(&dx, s->width);
        cpu_store(me->dx + s->at + k * s->step, &dx, width);
    }
}

/* Adds a strip's sums to those of the part. */
CPU_INLINE void keep_sums(const struct norm_backward *me, int64_t block, const struct channel_sums *c,
                          double *sums) {
    const int64_t at = block * me->pixels.view.lanes;
    if (me->pixels.is_plain) {
        sums[at] += (double)cpu_fold(&c->dyv);
        sums[me->n_sums + at] += (double)cpu_fold(&c->dy);
    } else {
        cpu_add_lanes(sums + at, &c->dyv);
        cpu_add_lanes(sums + me->n_sums + at, &c->dy);
    }
}

CPU_VECTOR static void layer_norm_backward_tile(const struct norm_backward *kernel,
                                                const struct cpu_tile *tile, double *sums) {
    const struct norm_backward me = *kernel; /* the compiler knows that no store changes this copy */
    const struct cpu_pixels *p = &me.pixels;
    const float share = 1 / (float)p->view.channels;
    struct pixel_sums t;
    for (int k = 0; k < tile->n; k++) {
        cpu_pixel_load(p, tile, k, me.mean, &t.mean[k]);
        cpu_pixel_load(p, tile, k, me.rstd, &t.rstd[k]);
        t.g[k] = t.gv[k] = (cpu_v16){0};
    }
    for (int64_t b = 0; b < p->view.n_blocks; b++) {
        const struct cpu_strip s = cpu_strip_of(p, tile, b);
        struct channel_sums c = {{0}, {0}, {0}};
        cpu_strip_values(p, me.weight, b, &c.weight);
        sum_vectors(&me, &s, 0, s.n_whole, CPU_LANES, &c, &t);
        sum_vectors(&me, &s, s.n_whole, s.n, s.width, &c, &t);
        keep_sums(&me, b, &c, sums);
    }
    for (int k = 0; k < tile->n; k++) {
        cpu_pixel_sum(p, &t.g[k]);
        cpu_pixel_sum(p, &t.gv[k]);
        t.g[k] *= share;
        t.gv[k] *= share;
    }
    for (int64_t b = 0; b < p->view.n_blocks && me.dx; b++) {
        const struct cpu_strip s = cpu_strip_of(p, tile, b);
        cpu_v16 weight;
        cpu_strip_values(p, me.weight, b, &weight);
        slope_vectors(&me, &s, 0, s.n_whole, CPU_LANES, &weight, &t);
        slope_vectors(&me, &s, s.n_whole, s.n, s.stored, &weight, &t);
    }
}

static void run_part(void *context, int part, int n_parts) {
    const struct norm_backward *me = context;
    double *sums = me->sums + part * 2 * me->n_sums;
    int64_t first, end;
    for (int64_t k = 0; k < 2 * me->n_sums; k++)
        sums[k] = 0;
    cpu_part(me->pixels.n_tiles, 1, part, n_parts, &first, &end);
    for (int64_t i = first; i < end; i++) {
        const struct cpu_tile tile = cpu_tile_of(&me->pixels, i);
        layer_norm_backward_tile(me, &tile, sums);
    }
}

/* One of the two sums, of all parts. */
static void put_sums(const struct norm_backward *me, int which, float *to) {
    for (int64_t c = 0; c < me->pixels.view.channels && to; c++) {
        double sum = 0;
        for (int part = 0; part < me->n_parts; part++)
            sum += me->sums[(part * 2 + which) * me->n_sums + c];
        to[c] = (float)sum;
    }
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct norm_backward *me = (struct norm_backward *)kernel;
    me->dy = in[0];
    me->x = in[1];
    me->weight = in[2];
    me->mean = in[3];
    me->rstd = in[4];
    me->dx = out[0];
    me->dweight = out[1];
    me->dbias = out[2];
    me->sums = scratch;
    cpu_team_run(me->n_parts, run_part, me);
    put_sums(me, 0, me->dweight);
    put_sums(me, 1, me->dbias);
    return CVY_OK;
}

/* x, input 1, was laid out by the forward pass. */
static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cpu_choose_view(call, 1);
    return CVY_OK;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    const struct cvy_operand_spec *x = &call->in[1];
    struct norm_backward *me;
    struct cpu_view view;
    if (!cpu_layout_view(x->layout, &x->desc, &view))
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s: layer_norm_backward has no loops for this layout",
                        device->name);
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = &CPU_REAL(cpu_kernel_layer_norm_backward);
    me->pixels = cpu_pixels_of(&view);
    me->n_sums = (me->pixels.view.n_blocks + 1) * CPU_LANES; /* a block of 8 lanes is kept as 16 */
    me->n_parts = cpu_team_parts(cvy_shape_count(&x->desc.shape), device->spec.n_threads);
    *scratch_bytes = (size_t)(me->n_parts * 2 * me->n_sums) * sizeof(double);
    *out = &me->base;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

const struct cvy_kernel_impl CPU_REAL(cpu_kernel_layer_norm_backward) = {
    .op = "layer_norm_backward",
    .supports = CPU_SUPPORTS_REAL,
    .choose = choose,
    .prepare = prepare,
    .run = run,
    .release = release,
};
