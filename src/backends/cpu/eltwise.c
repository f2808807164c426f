/* relu, its gradient, and add; what kernels of one pass over memory share. */
#include "backends/cpu/eltwise.h"
#include "base/mem.h"

#include <stdlib.h>

struct eltwise {
    struct cvy_kernel base;
    cpu_span *span;
    int64_t n; /* elements in memory */
    int n_in, n_parts;
    /* of the present run */
    const cpu_real *a, *b;
    cpu_real *y;
};
enum { GRAIN = 1024 }; /* elements */

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

CPU_ELTWISE_KERNEL(relu, cpu_eltwise_choose)
CPU_ELTWISE_KERNEL(relu_backward, cpu_eltwise_choose)
CPU_ELTWISE_KERNEL(add, cpu_eltwise_choose)

cvy_status cpu_eltwise_choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cpu_choose_like(call, 0);
    return CVY_OK;
}

cvy_status cpu_eltwise_choose_unpadded(struct cvy_device *device, struct cvy_call *call) {
    struct cpu_view view;
    const struct cvy_operand_spec *x = &call->in[0];
    bool is_whole =
        !x->layout || (cpu_layout_view(x->layout, &x->desc, &view) && view.padded_channels == view.channels);
    return is_whole ? cpu_eltwise_choose(device, call) : cpu_choose_plain(device, call);
}

cvy_status cpu_eltwise_prepare(const struct cvy_device *device, const struct cvy_call *call, cpu_span *span,
                               const struct cvy_kernel_impl *impl, struct cvy_kernel **out,
                               size_t *scratch_bytes) {
    struct eltwise *me;
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = impl;
    me->span = span;
    me->n = (int64_t)(cpu_layout_bytes(call->in[0].layout, &call->in[0].desc) / sizeof(cpu_real));
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

cvy_status cpu_eltwise_run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct eltwise *me = (struct eltwise *)kernel;
    (void)scratch;
    me->a = in[0];
    me->b = in[me->n_in - 1];
    me->y = out[0];
    cpu_team_run(me->n_parts, run_part, me);
    return CVY_OK;
}

void cpu_eltwise_release(struct cvy_kernel *kernel) { free(kernel); }
