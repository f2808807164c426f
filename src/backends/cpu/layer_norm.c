/* layer_norm: three passes over the channels of a tile of pixels, of which the first reads memory, the others the
   cache. The mean of the first is corrected by that of the deviations from it, so that it is good also far from 0.
   The padding of blocked layouts has weight and bias 0, so it stays 0. */
#include "ops/layer_norm.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/pixels.h"
#include "base/mem.h"

#include <stdlib.h>

struct layer_norm {
    struct cvy_kernel base;
    struct cpu_pixels pixels;
    float eps;
    int n_parts;
    /* of the present run; absent ones are NULL */
    const cpu_real *x;
    const float *weight, *bias;
    cpu_real *y;
    float *mean, *rstd;
};

struct statistics { /* of a tile's vectors */
    cpu_v16 mean[CPU_TILE], rstd[CPU_TILE], sum[CPU_TILE], m2[CPU_TILE];
};

CPU_INLINE void sum_vectors(const struct layer_norm *me, const struct cpu_strip *s, int first, int end,
                            const int width, struct statistics *t) {
    for (int k = first; k < end; k++) {
        cpu_v16 x;
        cpu_load(&x, me->x + s->at + k * s->step, width);
        t->sum[k] += x;
    }
}

CPU_INLINE void deviate_vectors(const struct layer_norm *me, const struct cpu_strip *s, int first, int end,
                                const int width, struct statistics *t) {
    for (int k = first; k < end; k++) {
        cpu_v16 d;
        cpu_load(&d, me->x + s->at + k * s->step, width);
        d -= t->mean[k];
        if (width < CPU_LANES)
            cpu_trim(&d, width);
        t->sum[k] += d;
        t->m2[k] += d * d;
    }
}

CPU_INLINE void apply_vectors(const struct layer_norm *me, const struct cpu_strip *s, int first, int end,
                              const int width, const cpu_v16 affine[2], const struct statistics *t) {
    for (int k = first; k < end; k++) {
        cpu_v16 y;
        cpu_load(&y, me->x + s->at + k * s->step, width);
        y = (y - t->mean[k]) * t->rstd[k] * affine[0] + affine[1];
        cpu_store(me->y + s->at + k * s->step, &y, width);
    }
}

/* Mean and rstd of each pixel. */
CPU_INLINE void measure_tile(const struct layer_norm *me, const struct cpu_tile *tile, struct statistics *t) {
    const struct cpu_pixels *p = &me->pixels;
    const float share = 1 / (float)p->view.channels;
    for (int k = 0; k < tile->n; k++)
        t->sum[k] = t->m2[k] = (cpu_v16){0};
    for (int64_t b = 0; b < p->view.n_blocks; b++) {
        const struct cpu_strip s = cpu_strip_of(p, tile, b);
        sum_vectors(me, &s, 0, s.n_whole, CPU_LANES, t);
        sum_vectors(me, &s, s.n_whole, s.n, s.width, t);
    }
    for (int k = 0; k < tile->n; k++) {
        cpu_pixel_sum(p, &t->sum[k]);
        t->mean[k] = t->sum[k] * share;
        t->sum[k] = (cpu_v16){0};
    }
    for (int64_t b = 0; b < p->view.n_blocks; b++) {
        const struct cpu_strip s = cpu_strip_of(p, tile, b);
        deviate_vectors(me, &s, 0, s.n_whole, CPU_LANES, t);
        deviate_vectors(me, &s, s.n_whole, s.n, s.width, t);
    }
    for (int k = 0; k < tile->n; k++) {
        cpu_pixel_sum(p, &t->sum[k]);
        cpu_pixel_sum(p, &t->m2[k]);
        cpu_v16 off = t->sum[k] * share, var = t->m2[k] * share - off * off;
        cpu_relu(&var); /* rounding may have taken it below 0 */
        var += me->eps;
        cpu_sqrt(&var);
        t->mean[k] += off;
        t->rstd[k] = 1 / var;
    }
}

CPU_VECTOR static void layer_norm_tile(const struct layer_norm *kernel, const struct cpu_tile *tile) {
    const struct layer_norm me = *kernel; /* the compiler knows that no store changes this copy */
    const struct cpu_pixels *p = &me.pixels;
    struct statistics t;
    measure_tile(&me, tile, &t);
    for (int k = 0; k < tile->n; k++) {
        if (me.mean)
            cpu_pixel_store(p, tile, k, &t.mean[k], me.mean);
        if (me.rstd)
            cpu_pixel_store(p, tile, k, &t.rstd[k], me.rstd);
    }
    for (int64_t b = 0; b < p->view.n_blocks && me.y; b++) {
        const struct cpu_strip s = cpu_strip_of(p, tile, b);
        cpu_v16 affine[2];
        cpu_strip_values(p, me.weight, b, &affine[0]);
        cpu_strip_values(p, me.bias, b, &affine[1]);
        apply_vectors(&me, &s, 0, s.n_whole, CPU_LANES, affine, &t);
        apply_vectors(&me, &s, s.n_whole, s.n, s.stored, affine, &t);
    }
}

static void run_part(void *context, int part, int n_parts) {
    const struct layer_norm *me = context;
    int64_t first, end;
    cpu_part(me->pixels.n_tiles, 1, part, n_parts, &first, &end);
    for (int64_t i = first; i < end; i++) {
        const struct cpu_tile tile = cpu_tile_of(&me->pixels, i);
        layer_norm_tile(me, &tile);
    }
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct layer_norm *me = (struct layer_norm *)kernel;
    (void)scratch;
    me->x = in[0];
    me->weight = in[1];
    me->bias = in[2];
    me->y = out[0];
    me->mean = out[1];
    me->rstd = out[2];
    cpu_team_run(me->n_parts, run_part, me);
    return CVY_OK;
}

static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cpu_choose_view(call, 0);
    return CVY_OK;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    const struct cvy_layer_norm_attrs *attrs = call->attrs;
    const struct cvy_operand_spec *x = &call->in[0];
    struct layer_norm *me;
    struct cpu_view view;
    if (!cpu_layout_view(x->layout, &x->desc, &view))
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s: layer_norm has no loops for this layout", device->name);
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = &CPU_REAL(cpu_kernel_layer_norm);
    me->pixels = cpu_pixels_of(&view);
    me->eps = (float)attrs->eps;
    me->n_parts = cpu_team_parts(cvy_shape_count(&x->desc.shape), device->spec.n_threads);
    *scratch_bytes = 0;
    *out = &me->base;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

const struct cvy_kernel_impl CPU_REAL(cpu_kernel_layer_norm) = {
    .op = "layer_norm",
    .supports = CPU_SUPPORTS_REAL,
    .choose = choose,
    .prepare = prepare,
    .run = run,
    .release = release,
};
