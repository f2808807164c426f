/* Launching, and operators that are launches. */
#include "operator.h"
#include "library.h"

#include "base/mem.h"

#include <stdlib.h>

enum { ALIGNMENT = 256 };

struct kernel {
    struct cvy_kernel base;
    struct cuda_device *device;
    const char *name;
    struct cuda_plan plan;
    size_t partial_at, partial_bytes; /* in the workspace, behind the table */
    int n_in, n_out;
    size_t in_bytes[CUDA_ARGS_IN], out_bytes[CUDA_ARGS_IN];
};

cvy_status cuda_launch(struct cuda_device *me, const struct cuda_launch *launch) {
    cudaError_t code = cuda_launch_now(cuda_stream(me), launch);
    return code == cudaSuccess ? CVY_OK : cuda_failed(me->base.name, code, launch->name);
}

/* ---- types ---------------------------------------------------------------------------------------------------- */

static bool has(const struct cvy_operand_spec *specs, int n, cvy_dtype dtype) {
    for (int i = 0; i < n; i++) {
        if (!specs[i].is_absent && specs[i].desc.dtype == dtype)
            return true;
    }
    return false;
}

static bool uses(const struct cvy_call *call, cvy_dtype dtype) {
    return has(call->in, call->n_in, dtype) || has(call->out, call->n_out, dtype);
}

bool cuda_supports_half(const struct cvy_device *device, const struct cvy_call *call) {
    (void)device;
    return !uses(call, CVY_F64);
}

bool cuda_supports_f32(const struct cvy_device *device, const struct cvy_call *call) {
    return cuda_supports_half(device, call) && !uses(call, CVY_BF16) && !uses(call, CVY_F16);
}

/* ---- preparing ------------------------------------------------------------------------------------------------ */

struct cuda_plan cuda_plan_simple(const struct cvy_call *call, enum cuda_function function, int64_t n) {
    struct cuda_plan plan = {.n_steps = 1, .step = {{.function = function, .n = n}}};
    for (int i = 0; i < call->n_in && i < CUDA_ARGS_IN; i++)
        plan.step[0].in[i] = (uint8_t)(CUDA_IN + i);
    for (int o = 0; o < call->n_out && o < CUDA_ARGS_OUT; o++)
        plan.step[0].out[o] = (uint8_t)(CUDA_OUT + o);
    return plan;
}

static uint8_t type_of(const struct cvy_call *call, int what) {
    const struct cvy_operand_spec *spec;
    if (what < CUDA_IN || (what < CUDA_OUT && what - CUDA_IN >= call->n_in))
        return CUDA_F32;
    spec = what < CUDA_OUT ? &call->in[what - CUDA_IN] : &call->out[what - CUDA_OUT];
    return (uint8_t)cuda_type_of(spec->desc.dtype);
}

static size_t bytes_of(const struct cvy_operand_spec *spec) {
    return spec->is_absent ? 0 : cuda_layout_bytes(spec->layout, &spec->desc);
}

static void set_types(struct kernel *k, const struct cvy_call *call) {
    for (int s = 0; s < k->plan.n_steps; s++) {
        struct cuda_step *step = &k->plan.step[s];
        struct cuda_fold fold = cuda_fold_of(step->n, step->row, step->is_near);
        if (step->row && cuda_fold_bytes(&fold) > k->partial_bytes)
            k->partial_bytes = cuda_fold_bytes(&fold);
        for (int i = 0; i < CUDA_ARGS_IN; i++)
            step->args.in_type[i] = type_of(call, step->in[i]);
        for (int o = 0; o < CUDA_ARGS_OUT; o++)
            step->args.out_type[o] = type_of(call, step->out[o]);
    }
}

cvy_status cuda_prepare_plan(struct cvy_device *device, const struct cvy_call *call,
                             const struct cvy_kernel_impl *impl, const struct cuda_plan *plan,
                             struct cvy_kernel **out, size_t *scratch_bytes) {
    struct kernel *k;
    if (call->n_in > CUDA_ARGS_IN || call->n_out > CUDA_ARGS_IN)
        return CVY_FAIL(CVY_ERR_FAILED, "%s: %d inputs and %d outputs are too many for one kernel",
                        call->op->name, call->n_in, call->n_out);
    CVY_TRY(CVY_ALLOC(k, 1));
    k->base.impl = impl;
    k->device = cuda_device(device);
    k->name = call->op->name;
    k->plan = *plan;
    k->n_in = call->n_in;
    k->n_out = call->n_out;
    for (int i = 0; i < call->n_in; i++)
        k->in_bytes[i] = bytes_of(&call->in[i]);
    for (int o = 0; o < call->n_out; o++)
        k->out_bytes[o] = bytes_of(&call->out[o]);
    set_types(k, call);
    k->partial_at = (plan->table_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *scratch_bytes = k->partial_bytes ? k->partial_at + k->partial_bytes : plan->table_bytes;
    *out = &k->base;
    return CVY_OK;
}

/* ---- running -------------------------------------------------------------------------------------------------- */

struct run {
    const struct kernel *kernel;
    void *const *in, *const *out;
    void *scratch;
};

/* The memory that an argument stands for. */
static struct cuda_range range_of(const struct run *run, int what, bool is_write) {
    const struct kernel *k = run->kernel;
    if (what == CUDA_NONE || (what >= CUDA_IN && what < CUDA_OUT && what - CUDA_IN >= k->n_in))
        return (struct cuda_range){NULL, 0, is_write};
    if (what == CUDA_TABLE)
        return (struct cuda_range){run->scratch, k->plan.table_bytes, is_write};
    if (what < CUDA_OUT)
        return (struct cuda_range){run->in[what - CUDA_IN], k->in_bytes[what - CUDA_IN], is_write};
    return (struct cuda_range){run->out[what - CUDA_OUT], k->out_bytes[what - CUDA_OUT], is_write};
}

static cvy_status run_step(const struct run *run, const struct cuda_step *step) {
    struct cuda_args args = step->args;
    struct cuda_range ranges[CUDA_ARGS_IN + CUDA_ARGS_OUT + 1], range;
    struct cuda_launch launch = {.function = step->function,
                                 .name = run->kernel->name,
                                 .args = &args,
                                 .n = step->n,
                                 .row = step->row,
                                 .is_near = step->is_near,
                                 .ranges = ranges};
    for (int i = 0; i < CUDA_ARGS_IN; i++) {
        range = range_of(run, step->in[i], false);
        args.in[i] = range.at;
        if (range.at)
            ranges[launch.n_ranges++] = range;
    }
    for (int o = 0; o < CUDA_ARGS_OUT; o++) {
        range = range_of(run, step->out[o], true);
        args.out[o] = (void *)range.at;
        if (range.at)
            ranges[launch.n_ranges++] = range;
    }
    if (step->row && run->kernel->partial_bytes) {
        launch.partial = (float *)((char *)run->scratch + run->kernel->partial_at);
        ranges[launch.n_ranges++] = (struct cuda_range){launch.partial, run->kernel->partial_bytes, true};
    }
    return cuda_launch(run->kernel->device, &launch);
}

cvy_status cuda_run_plan(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    const struct run run = {(const struct kernel *)kernel, in, out, scratch};
    for (int s = 0; s < run.kernel->plan.n_steps; s++)
        CVY_TRY(run_step(&run, &run.kernel->plan.step[s]));
    return CVY_OK;
}

void cuda_release_plan(struct cvy_kernel *kernel) { free(kernel); }

cvy_status cuda_choose_first(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cuda_choose_like(call, 0);
    return CVY_OK;
}
