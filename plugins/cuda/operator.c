/* Launching, and operators that are one launch. */
#include "operator.h"

#include "base/mem.h"

#include <stdlib.h>

struct operand {
    size_t n_bytes;
};

struct kernel {
    struct cvy_kernel base;
    struct cuda_device *device;
    const char *name;
    struct cuda_plan plan;
    int n_in, n_out;
    struct operand in[CUDA_ARGS_IN], out[CUDA_ARGS_OUT];
};

cvy_status cuda_launch(struct cuda_device *me, const struct cuda_launch *launch) {
    cudaError_t code = cuda_launch_now(cuda_stream(me), launch);
    return code == cudaSuccess ? CVY_OK : cuda_failed(me->base.name, code, launch->name);
}

static size_t bytes_of(const struct cvy_operand_spec *spec) {
    return spec->is_absent ? 0 : cuda_layout_bytes(spec->layout, &spec->desc);
}

static uint8_t type_of(const struct cvy_operand_spec *spec) {
    return spec->desc.dtype == CVY_BF16 ? CUDA_BF16 : CUDA_F32;
}

cvy_status cuda_prepare_launch(struct cvy_device *device, const struct cvy_call *call,
                               const struct cvy_kernel_impl *impl, const struct cuda_plan *plan,
                               struct cvy_kernel **out) {
    struct kernel *k;
    if (call->n_in > CUDA_ARGS_IN || call->n_out > CUDA_ARGS_OUT)
        return CVY_FAIL(CVY_ERR_FAILED, "%s: %d inputs and %d outputs are too many for one launch",
                        call->op->name, call->n_in, call->n_out);
    CVY_TRY(CVY_ALLOC(k, 1));
    k->base.impl = impl;
    k->device = cuda_device(device);
    k->name = call->op->name;
    k->plan = *plan;
    k->n_in = call->n_in;
    k->n_out = call->n_out;
    for (int i = 0; i < call->n_in; i++) {
        k->in[i].n_bytes = bytes_of(&call->in[i]);
        k->plan.args.in_type[i] = type_of(&call->in[i]);
    }
    for (int i = 0; i < call->n_out; i++) {
        k->out[i].n_bytes = bytes_of(&call->out[i]);
        k->plan.args.out_type[i] = type_of(&call->out[i]);
    }
    *out = &k->base;
    return CVY_OK;
}

cvy_status cuda_run_launch(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    const struct kernel *k = (const struct kernel *)kernel;
    struct cuda_args args = k->plan.args;
    struct cuda_range ranges[CUDA_ARGS_IN + CUDA_ARGS_OUT];
    (void)scratch;
    for (int i = 0; i < k->n_in; i++) {
        args.in[i] = in[i];
        ranges[i] = (struct cuda_range){in[i], k->in[i].n_bytes, false};
    }
    for (int i = 0; i < k->n_out; i++) {
        args.out[i] = out[i];
        ranges[k->n_in + i] = (struct cuda_range){out[i], k->out[i].n_bytes, true};
    }
    return cuda_launch(k->device, &(struct cuda_launch){.function = k->plan.function,
                                                        .name = k->name,
                                                        .args = &args,
                                                        .n = k->plan.n,
                                                        .row = k->plan.row,
                                                        .n_ranges = k->n_in + k->n_out,
                                                        .ranges = ranges});
}

void cuda_release_launch(struct cvy_kernel *kernel) { free(kernel); }
