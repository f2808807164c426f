/* cast: activations between float32 and bfloat16, and parameters into it after each update; in the layout that there
   is. */
#include "ops/cast.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/vector.h"
#include "base/mem.h"

#include <stdlib.h>

enum { GRAIN = 1024 }; /* elements */

struct cast {
    struct cvy_kernel base;
    cvy_dtype from, to;
    int64_t n; /* elements in memory, padding too */
    int n_parts;
    /* of the present run */
    const void *x;
    void *y;
};

CPU_VECTOR static void cast_narrow(cpu_bf16 *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += CPU_LANES) {
        cpu_v16 v;
        int width = n - i < CPU_LANES ? (int)(n - i) : CPU_LANES;
        cpu_load(&v, x + i, width);
        cpu_store(y + i, &v, width);
    }
}

CPU_VECTOR static void cast_widen(float *y, const cpu_bf16 *x, int64_t n) {
    for (int64_t i = 0; i < n; i += CPU_LANES) {
        cpu_v16 v;
        int width = n - i < CPU_LANES ? (int)(n - i) : CPU_LANES;
        cpu_load(&v, x + i, width);
        cpu_store(y + i, &v, width);
    }
}

static void run_part(void *context, int part, int n_parts) {
    const struct cast *me = context;
    int64_t first, end;
    cpu_part(me->n, GRAIN, part, n_parts, &first, &end);
    if (me->to == CVY_BF16)
        cast_narrow((cpu_bf16 *)me->y + first, (const float *)me->x + first, end - first);
    else if (me->from == CVY_F32)
        memmove((float *)me->y + first, (const float *)me->x + first, (size_t)(end - first) * sizeof(float));
    else
        cast_widen((float *)me->y + first, (const cpu_bf16 *)me->x + first, end - first);
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct cast *me = (struct cast *)kernel;
    (void)scratch;
    me->x = in[0];
    me->y = out[0];
    cpu_team_run(me->n_parts, run_part, me);
    return CVY_OK;
}

static bool supports(const struct cvy_device *device, const struct cvy_call *call) {
    cvy_dtype from = call->in[0].desc.dtype, to = call->out[0].desc.dtype;
    (void)device;
    return (from == CVY_F32 && (to == CVY_F32 || to == CVY_BF16)) || (from == CVY_BF16 && to == CVY_F32);
}

static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cpu_choose_like(call, 0);
    return CVY_OK;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    struct cast *me;
    const struct cvy_operand_spec *x = &call->in[0];
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = &cpu_kernel_cast;
    me->from = x->desc.dtype;
    me->to = call->out[0].desc.dtype;
    me->n = (int64_t)(cpu_layout_bytes(x->layout, &x->desc) /
                      (me->from == CVY_F32 ? sizeof(float) : sizeof(cpu_bf16)));
    me->n_parts = cpu_team_parts(me->n, device->spec.n_threads);
    *scratch_bytes = 0;
    *out = &me->base;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

const struct cvy_kernel_impl cpu_kernel_cast = {
    .op = "cast",
    .supports = supports,
    .choose = choose,
    .prepare = prepare,
    .run = run,
    .release = release,
};
