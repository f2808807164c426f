/* Max, average and adaptive average pooling and their gradients, over the vectors of channels of any layout.
   Every one is a walk over the output's positions, each with a window of the image; windows are worked out when the
   kernel is made. Planes (one block of channels of one image) are independent, so threads share out the planes and
   the bits do not even depend on T. Padding lanes hold zeros, which pool to zeros. */
#include "ops/pool.h"
#include "backends/cpu/grid.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/pool_window.h"
#include "base/mem.h"

#include <stdlib.h>

struct pool;
struct plane {         /* one block of channels of one image */
    const cpu_real *x; /* the large side, forward */
    float *dx;         /* backward: pixels of `lanes` side by side, zero at first */
    cpu_real *small;   /* y or dy */
    int32_t *index;    /* the winners (max), at the same places */
    int lanes;
};
typedef void plane_function(const struct pool *me, const struct plane *plane);

struct pool {
    struct cvy_kernel base;
    plane_function *plane;
    struct cpu_view large, small;
    int64_t width;             /* of the large side, pixels */
    int64_t n_rows, n_columns; /* of the small side */
    struct cpu_window *rows, *columns;
    bool is_backward;
    bool is_buffered; /* backward: sums in the workspace, a plane for each thread, then stored */
    int n_threads;
    /* of the present run */
    cpu_real *large_at, *small_at;
    int32_t *index_at;
    float *sums;
};

/* ---- planes -------------------------------------------------------------------------------------- */

/* The winner of each lane: the first of equals; NaN beats everything, so the first NaN stays. */
CPU_INLINE void max_window(const struct pool *me, const cpu_real *x, const struct cpu_window *h,
                           const struct cpu_window *w, const int lanes, cpu_v16 *best, cpu_v16i *best_at) {
    cpu_v16 v;
    *best = (cpu_v16){0} - INFINITY;
    *best_at = (cpu_v16i){0} + (int32_t)(h->first * me->width + w->first);
    for (int64_t r = h->first; r < h->end; r += h->step) {
        for (int64_t c = w->first; c < w->end; c += w->step) {
            int64_t at = r * me->width + c;
            cpu_load(&v, x + at * me->large.pixel, lanes);
            cpu_take_larger(best, best_at, &v, (int32_t)at);
        }
    }
}

CPU_INLINE void max_plane_of(const struct pool *me, const struct plane *plane, const int lanes) {
    for (int64_t p = 0; p < me->n_rows; p++) {
        for (int64_t q = 0; q < me->n_columns; q++) {
            cpu_v16 best;
            cpu_v16i best_at;
            int64_t at = (p * me->n_columns + q) * me->small.pixel;
            max_window(me, plane->x, &me->rows[p], &me->columns[q], lanes, &best, &best_at);
            cpu_store(plane->small + at, &best, lanes);
            if (plane->index)
                memcpy(plane->index + at, &best_at, cpu_width(lanes) * sizeof *plane->index);
        }
    }
}

CPU_INLINE void average_plane_of(const struct pool *me, const struct plane *plane, const int lanes) {
    for (int64_t p = 0; p < me->n_rows; p++) {
        for (int64_t q = 0; q < me->n_columns; q++) {
            const struct cpu_window *h = &me->rows[p], *w = &me->columns[q];
            cpu_v16 v, sum = {0};
            for (int64_t r = h->first; r < h->end; r++) {
                for (int64_t c = w->first; c < w->end; c++) {
                    cpu_load(&v, plane->x + (r * me->width + c) * me->large.pixel, lanes);
                    sum += v;
                }
            }
            sum /= (float)(h->divisor * w->divisor);
            cpu_store(plane->small + (p * me->n_columns + q) * me->small.pixel, &sum, lanes);
        }
    }
}

CPU_INLINE void spread_plane_of(const struct pool *me, const struct plane *plane, const int lanes) {
    for (int64_t p = 0; p < me->n_rows; p++) {
        for (int64_t q = 0; q < me->n_columns; q++) {
            const struct cpu_window *h = &me->rows[p], *w = &me->columns[q];
            cpu_v16 v, share;
            cpu_load(&share, plane->small + (p * me->n_columns + q) * me->small.pixel, lanes);
            share /= (float)(h->divisor * w->divisor);
            for (int64_t r = h->first; r < h->end; r++) {
                for (int64_t c = w->first; c < w->end; c++) {
                    float *at = plane->dx + (r * me->width + c) * lanes;
                    cpu_load(&v, at, lanes);
                    v += share;
                    cpu_store(at, &v, lanes);
                }
            }
        }
    }
}

/* The winner of each lane: its share goes to one place. */
CPU_INLINE void winner_plane_of(const struct pool *me, const struct plane *plane, const int lanes) {
    int64_t n = me->n_rows * me->n_columns;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t l = 0; l < lanes; l++) {
            int64_t at = i * me->small.pixel + l;
            plane->dx[plane->index[at] * lanes + l] += cpu_widen(plane->small[at]);
        }
    }
}

/* The usual numbers of lanes, 16 and plain layout's 1, are constants to the compiler. */
#define PLANE_FUNCTION(name)                                                                \
    CPU_VECTOR static void name##_plane(const struct pool *me, const struct plane *plane) { \
        if (plane->lanes == CPU_LANES)                                                      \
            name##_plane_of(me, plane, CPU_LANES);                                          \
        else if (plane->lanes == 1)                                                         \
            name##_plane_of(me, plane, 1);                                                  \
        else                                                                                \
            name##_plane_of(me, plane, plane->lanes);                                       \
    }
PLANE_FUNCTION(max)
PLANE_FUNCTION(average)
PLANE_FUNCTION(spread)
PLANE_FUNCTION(winner)

CPU_VECTOR static void pool_store_sums(const struct pool *me, const struct plane *plane, cpu_real *large) {
    cpu_v16 v;
    for (int64_t i = 0; i < me->large.pixels; i++) {
        cpu_load(&v, plane->dx + i * plane->lanes, plane->lanes);
        cpu_store(large + i * me->large.pixel, &v, plane->lanes);
    }
}

/* ---- slots --------------------------------------------------------------------------------------- */

static void run_part(void *context, int part, int n_parts) {
    const struct pool *me = context;
    int64_t first, end;
    cpu_part(me->large.n * me->large.n_blocks, 1, part, n_parts, &first, &end);
    for (int64_t i = first; i < end; i++) {
        int64_t image = i / me->large.n_blocks, block = i % me->large.n_blocks;
        int64_t left = me->large.padded_channels - block * me->large.lanes;
        int64_t small = image * me->small.image + block * me->small.block;
        cpu_real *large = me->large_at + image * me->large.image + block * me->large.block;
        struct plane plane = {.x = large,
                              .small = me->small_at + small,
                              .index = me->index_at ? me->index_at + small : NULL,
                              .lanes = (int)(left < me->large.lanes ? left : me->large.lanes)};
        if (me->is_backward) {
            plane.dx = me->is_buffered ? me->sums + part * me->large.pixels * CPU_LANES : (void *)large;
            memset(plane.dx, 0, (size_t)(me->large.pixels * plane.lanes) * sizeof *plane.dx);
        }
        me->plane(me, &plane);
        if (me->is_buffered)
            pool_store_sums(me, &plane, large);
    }
}

/* Forward: x to y and index. Backward: dy and index to dx. */
static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct pool *me = (struct pool *)kernel;
    bool is_max = me->plane == max_plane || me->plane == winner_plane;
    me->sums = scratch;
    me->large_at = me->is_backward ? out[0] : in[0];
    me->small_at = me->is_backward ? in[0] : out[0];
    me->index_at = !is_max ? NULL : me->is_backward ? in[1] : out[1];
    cpu_team_run(me->n_threads, run_part, me);
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) {
    struct pool *me = (struct pool *)kernel;
    if (!me)
        return;
    free(me->rows);
    free(me->columns);
    free(me);
}

/* Sums are float32: they can be made in dx itself where that is so too, and a plane is one piece of memory. */
static bool is_buffered(const struct cpu_view *view) {
    return sizeof(cpu_real) != sizeof(float) || view->pixel != view->lanes;
}

/* One pixel an image in plain layout is N,H,W,C all the same. */
static void see_channels_last(struct cpu_view *v) {
    v->lanes = v->block = CPU_LANES;
    v->pixel = v->padded_channels = v->channels;
    v->n_blocks = (v->channels + CPU_LANES - 1) / CPU_LANES;
}

/* Both sides, and the winners, lie as the input does. */
static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    struct cpu_view view;
    const struct cvy_layout *layout = call->in[0].layout;
    (void)device;
    if (!cpu_layout_view(layout, &call->in[0].desc, &view))
        layout = NULL;
    for (int i = 0; i < call->n_in; i++)
        call->in[i].layout = layout;
    for (int o = 0; o < call->n_out; o++)
        call->out[o].layout = layout;
    return CVY_OK;
}

/* But where one pixel is spread that has no layout of its own, since it comes from a linear layer, dx lies as
   convolutions in bfloat16 want it. */
static cvy_status choose_backward(struct cvy_device *device, struct cvy_call *call) {
    CVY_TRY(choose(device, call));
    if (sizeof(cpu_real) != sizeof(float) && call->n_in == 1 && !call->in[0].layout &&
        call->in[0].desc.shape.dim[2] * call->in[0].desc.shape.dim[3] == 1)
        (void)cpu_layout_find(device, "acdb", &call->out[0].layout);
    return CVY_OK;
}

static cvy_status make(struct cvy_device *device, const struct cvy_call *call,
                       const struct cvy_kernel_impl *impl, plane_function *plane, bool is_backward,
                       cpu_window_rule *rule, struct cvy_kernel **out, size_t *scratch_bytes) {
    cvy_status status = CVY_OK;
    struct pool *me;
    const struct cvy_operand_spec *large = is_backward ? &call->out[0] : &call->in[0];
    const struct cvy_operand_spec *small = is_backward ? &call->in[0] : &call->out[0];
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = impl;
    me->plane = plane;
    me->is_backward = is_backward;
    me->width = large->desc.shape.dim[3];
    me->n_rows = small->desc.shape.dim[2];
    me->n_columns = small->desc.shape.dim[3];
    me->n_threads = device->spec.n_threads;
    if (!cpu_layout_view(large->layout, &large->desc, &me->large) ||
        !cpu_layout_view(small->layout, &small->desc, &me->small)) {
        status = CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s: %s has no loops for this layout", device->name, impl->op);
        goto out;
    }
    if (me->small.lanes == 1 && me->small.pixels == 1 && me->large.lanes == CPU_LANES)
        see_channels_last(&me->small);
    me->is_buffered = is_backward && is_buffered(&me->large);
    *scratch_bytes =
        me->is_buffered ? (size_t)(me->n_threads * me->large.pixels) * CPU_LANES * sizeof(float) : 0;
    CVY_TRY_OUT(CVY_ALLOC(me->rows, (size_t)me->n_rows));
    CVY_TRY_OUT(CVY_ALLOC(me->columns, (size_t)me->n_columns));
    for (int64_t p = 0; p < me->n_rows; p++)
        me->rows[p] = rule(call->attrs, 0, large->desc.shape.dim[2], me->n_rows, p);
    for (int64_t q = 0; q < me->n_columns; q++)
        me->columns[q] = rule(call->attrs, 1, me->width, me->n_columns, q);
    *out = &me->base;
out:
    if (status != CVY_OK)
        release(&me->base);
    return status;
}

#define POOL_KERNEL(name, plane, is_backward, rule)                                            \
    static cvy_status prepare_##name(struct cvy_device *device, const struct cvy_call *call,   \
                                     struct cvy_kernel **out, size_t *scratch_bytes) {         \
        return make(device, call, &CPU_REAL(cpu_kernel_##name), plane, is_backward, rule, out, \
                    scratch_bytes);                                                            \
    }                                                                                          \
    const struct cvy_kernel_impl CPU_REAL(cpu_kernel_##name) = {                               \
        .op = #name,                                                                           \
        .supports = CPU_SUPPORTS_REAL,                                                         \
        .choose = is_backward ? choose_backward : choose,                                      \
        .prepare = prepare_##name,                                                             \
        .run = run,                                                                            \
        .release = release,                                                                    \
    };
POOL_KERNEL(max_pool, max_plane, false, cpu_window_max)
POOL_KERNEL(max_pool_backward, winner_plane, true, cpu_window_max)
POOL_KERNEL(avg_pool, average_plane, false, cpu_window_average)
POOL_KERNEL(avg_pool_backward, spread_plane, true, cpu_window_average)
POOL_KERNEL(adaptive_avg_pool, average_plane, false, cpu_window_adaptive)
POOL_KERNEL(adaptive_avg_pool_backward, spread_plane, true, cpu_window_adaptive)
