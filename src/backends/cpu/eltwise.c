/* relu, its gradient, and add: one pass over memory, in whatever layout the first operand has, in place too. The
   padding of blocked layouts is computed along with the rest: zeros give zeros. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/vector.h"
#include "base/mem.h"

#include <stdlib.h>

typedef void span_function(float *y, const float *a, const float *b, int64_t n);

struct eltwise {
    struct cvy_kernel base;
    span_function *span;
    int64_t n; /* floats in memory */
    int n_in, n_parts;
    /* of the present run */
    const float *a, *b;
    float *y;
};
enum { GRAIN = 1024 }; /* floats */

CPU_INLINE void relu_vector(cpu_v16 *y, const cpu_v16 *x, const cpu_v16 *unused) {
    (void)unused;
    *y = *x;
    cpu_relu(y);
}

CPU_INLINE void relu_backward_vector(cpu_v16 *dx, const cpu_v16 *dy, const cpu_v16 *y) {
    *dx = *dy;
    cpu_where_positive(dx, y);
}

CPU_INLINE void add_vector(cpu_v16 *y, const cpu_v16 *a, const cpu_v16 *b) { *y = *a + *b; }

#define SPAN(name)                                                                            \
    CPU_INLINE void name##_part(float *y, const float *a, const float *b, int width) {        \
        cpu_v16 v, w, result;                                                                 \
        cpu_load(&v, a, width);                                                               \
        cpu_load(&w, b, width);                                                               \
        name##_vector(&result, &v, &w);                                                       \
        cpu_store(y, &result, width);                                                         \
    }                                                                                         \
    CPU_VECTOR static void name##_span(float *y, const float *a, const float *b, int64_t n) { \
        int64_t i = 0;                                                                        \
        for (; i + CPU_LANES <= n; i += CPU_LANES)                                            \
            name##_part(y + i, a + i, b + i, CPU_LANES);                                      \
        name##_part(y + i, a + i, b + i, (int)(n - i));                                       \
    }
SPAN(relu)
SPAN(relu_backward)
SPAN(add)

static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cpu_choose_like(call, 0);
    return CVY_OK;
}

static cvy_status prepare_span(struct cvy_device *device, const struct cvy_call *call, span_function *span,
                               const struct cvy_kernel_impl *impl, struct cvy_kernel **out,
                               size_t *scratch_bytes) {
    struct eltwise *me;
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = impl;
    me->span = span;
    me->n = (int64_t)(cpu_layout_bytes(call->in[0].layout, &call->in[0].desc) / sizeof(float));
    me->n_in = call->n_in;
    me->n_parts = cpu_team_parts(me->n, device->spec.n_threads);
    *scratch_bytes = 0;
    *out = &me->base;
    return CVY_OK;
}

static void run_part(void *context, int part, int n_parts) {
    const struct eltwise *me = context;
    int64_t first, end;
    cpu_part(me->n, GRAIN, part, n_parts, &first, &end);
    me->span(me->y + first, me->a + first, me->b + first, end - first);
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct eltwise *me = (struct eltwise *)kernel;
    (void)scratch;
    me->a = in[0];
    me->b = in[me->n_in - 1];
    me->y = out[0];
    cpu_team_run(me->n_parts, run_part, me);
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

#define ELTWISE_KERNEL(name)                                                                    \
    static cvy_status prepare_##name(struct cvy_device *device, const struct cvy_call *call,    \
                                     struct cvy_kernel **out, size_t *scratch_bytes) {          \
        return prepare_span(device, call, name##_span, &cpu_kernel_##name, out, scratch_bytes); \
    }                                                                                           \
    const struct cvy_kernel_impl cpu_kernel_##name = {                                          \
        .op = #name,                                                                            \
        .supports = cpu_supports_f32,                                                           \
        .choose = choose,                                                                       \
        .prepare = prepare_##name,                                                              \
        .run = run,                                                                             \
        .release = release,                                                                     \
    };
ELTWISE_KERNEL(relu)
ELTWISE_KERNEL(relu_backward)
ELTWISE_KERNEL(add)
