/* mul, and the gradient of factors. Threads share out planes (a block of channels of one image), or blocks of channels
   where a factor belongs to all images; each is computed by itself, so the bits do not depend on T. */
#include "ops/mul.h"
#include "backends/cpu/grid.h"
#include "backends/cpu/kernels.h"
#include "base/mem.h"

#include <stdlib.h>

enum kind { SAME_SHAPE, PER_IMAGE, PER_CHANNEL };

struct mul {
    struct cvy_kernel base;
    cpu_body body;
    enum kind kind;
    struct cpu_view view;
    int64_t n_items;
    int n_parts;
    /* of the present run */
    const cpu_real *a, *b;
    void *y; /* float where it is the gradient of a parameter, else cpu_real */
};

/* Lanes of a block that there are in memory. */
CPU_INLINE int lanes_of(const struct cpu_view *v, int64_t block) {
    int64_t left = v->padded_channels - block * v->lanes;
    return (int)(left < v->lanes ? left : v->lanes);
}

/* n vectors of `width` lanes, `step` apart: y = a b, with the vectors of b, or (b NULL) one factor for all. */
CPU_INLINE void mul_run(cpu_real *y, const cpu_real *a, const cpu_real *b, const cpu_v16 *factor, int64_t n,
                        int64_t step, const int width) {
    for (int64_t k = 0; k < n; k++) {
        cpu_v16 v, w = *factor;
        cpu_load(&v, a + k * step, width);
        if (b)
            cpu_load(&w, b + k * step, width);
        v *= w;
        cpu_store(y + k * step, &v, width);
    }
}

CPU_INLINE void mul_plane(const struct mul *me, int64_t item) {
    const struct cpu_view *v = &me->view;
    int64_t n = item / v->n_blocks, block = item % v->n_blocks, at = n * v->image + block * v->block;
    const cpu_real *a = me->a + at, *b = NULL;
    cpu_real *y = (cpu_real *)me->y + at;
    cpu_v16 factor = {0};
    if (me->kind == SAME_SHAPE) {
        b = me->b + at;
    } else {
        const cpu_real *from = me->b + (me->kind == PER_IMAGE ? n * v->channels : 0) + block * v->lanes;
        float factors[CPU_LANES];
        for (int l = 0; l < cpu_n_channels(v, block); l++)
            factors[l] = cpu_widen(from[l]);
        cpu_per_lane(v, factors, cpu_n_channels(v, block), &factor);
    }
    if (v->lanes == 1) {
        int64_t whole = v->pixels / CPU_LANES * CPU_LANES;
        mul_run(y, a, b, &factor, v->pixels / CPU_LANES, CPU_LANES, CPU_LANES);
        mul_run(y + whole, a + whole, b ? b + whole : NULL, &factor, 1, CPU_LANES, (int)(v->pixels - whole));
    } else if (lanes_of(v, block) == CPU_LANES) {
        mul_run(y, a, b, &factor, v->pixels, v->pixel, CPU_LANES);
    } else {
        mul_run(y, a, b, &factor, v->pixels, v->pixel, lanes_of(v, block));
    }
}

/* n vectors, summed lane by lane. */
CPU_INLINE void sum_run(double sums[CPU_LANES], const cpu_real *a, const cpu_real *b, int64_t n, int64_t step,
                        const int width) {
    for (int64_t first = 0; first < n; first += CPU_CHUNK) {
        cpu_v16 sum = {0}, v, w;
        for (int64_t k = first; k < n && k < first + CPU_CHUNK; k++) {
            cpu_load(&v, a + k * step, width);
            cpu_load(&w, b + k * step, width);
            sum += v * w;
        }
        cpu_add_lanes(sums, &sum);
    }
}

CPU_INLINE void sum_plane(const struct mul *me, int64_t n, int64_t block, double sums[CPU_LANES]) {
    const struct cpu_view *v = &me->view;
    int64_t at = n * v->image + block * v->block;
    const cpu_real *a = me->a + at, *b = me->b + at;
    if (v->lanes == 1) {
        int64_t whole = v->pixels / CPU_LANES * CPU_LANES;
        sum_run(sums, a, b, v->pixels / CPU_LANES, CPU_LANES, CPU_LANES);
        sum_run(sums, a + whole, b + whole, 1, CPU_LANES, (int)(v->pixels - whole));
    } else if (lanes_of(v, block) == CPU_LANES) {
        sum_run(sums, a, b, v->pixels, v->pixel, CPU_LANES);
    } else {
        sum_run(sums, a, b, v->pixels, v->pixel, lanes_of(v, block));
    }
}

CPU_INLINE void sum_item(const struct mul *me, int64_t item) {
    const struct cpu_view *v = &me->view;
    double sums[CPU_LANES] = {0};
    bool per_image = me->kind == PER_IMAGE;
    int64_t block = item % v->n_blocks, first = item / v->n_blocks;
    int64_t end = per_image ? first + 1 : v->n;
    for (int64_t n = per_image ? first : 0; n < end; n++)
        sum_plane(me, n, block, sums);
    int64_t at = (per_image ? first * v->channels : 0) + block * v->lanes;
    if (v->lanes == 1)
        sums[0] = cpu_fold_lanes(sums);
    for (int l = 0; l < cpu_n_channels(v, block); l++) {
        if (per_image)
            ((cpu_real *)me->y)[at + l] = cpu_narrow((float)sums[l]);
        else
            ((float *)me->y)[at + l] = (float)sums[l];
    }
}

CPU_VECTOR static void mul_part(void *context, int part, int n_parts) {
    const struct mul *me = context;
    int64_t first, end;
    cpu_part(me->n_items, 1, part, n_parts, &first, &end);
    for (int64_t item = first; item < end; item++)
        mul_plane(me, item);
}

CPU_VECTOR static void mul_backward_part(void *context, int part, int n_parts) {
    const struct mul *me = context;
    int64_t first, end;
    cpu_part(me->n_items, 1, part, n_parts, &first, &end);
    for (int64_t item = first; item < end; item++)
        sum_item(me, item);
}

static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cpu_choose_view(call, 0);
    return CVY_OK;
}

static cvy_status make(const struct cvy_device *device, const struct cvy_call *call, const struct mul *like,
                       struct cvy_kernel **out) {
    struct mul *me;
    const struct cvy_desc *x = &call->in[0].desc;
    CVY_TRY(CVY_ALLOC(me, 1));
    *me = *like;
    if (!cpu_layout_view(call->in[0].layout, x, &me->view)) { /* one dimension: a plane of one channel */
        int64_t n = cvy_shape_count(&x->shape);
        me->view = (struct cpu_view){1, 1, n, 1, n, n, 1, 1, 1};
    }
    me->n_items = me->view.n_blocks *
                  (me->base.impl == &CPU_REAL(cpu_kernel_mul) || me->kind == PER_IMAGE ? me->view.n : 1);
    me->n_parts = cpu_team_parts(cvy_shape_count(&x->shape), device->spec.n_threads);
    *out = &me->base;
    return CVY_OK;
}

static cvy_status prepare_mul(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                              size_t *scratch_bytes) {
    const struct cvy_shape *b = &call->in[1].desc.shape;
    bool is_same = cvy_shape_equal(&call->in[0].desc.shape, b);
    const struct mul like = {.base.impl = &CPU_REAL(cpu_kernel_mul),
                             .body = mul_part,
                             .kind = is_same     ? SAME_SHAPE
                                     : b->n == 4 ? PER_IMAGE
                                                 : PER_CHANNEL};
    *scratch_bytes = 0;
    return make(device, call, &like, out);
}

static cvy_status prepare_mul_backward(struct cvy_device *device, const struct cvy_call *call,
                                       struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_mul_attrs *attrs = call->attrs;
    const struct mul like = {.base.impl = &CPU_REAL(cpu_kernel_mul_backward),
                             .body = mul_backward_part,
                             .kind = attrs->per_image ? PER_IMAGE : PER_CHANNEL};
    *scratch_bytes = 0;
    return make(device, call, &like, out);
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct mul *me = (struct mul *)kernel;
    (void)scratch;
    me->a = in[0];
    me->b = in[1];
    me->y = out[0];
    cpu_team_run(me->n_parts, me->body, me);
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

#define MUL_KERNEL(name)                                         \
    const struct cvy_kernel_impl CPU_REAL(cpu_kernel_##name) = { \
        .op = #name,                                             \
        .supports = CPU_SUPPORTS_REAL,                           \
        .choose = choose,                                        \
        .prepare = prepare_##name,                               \
        .run = run,                                              \
        .release = release,                                      \
    };
MUL_KERNEL(mul)
MUL_KERNEL(mul_backward)
