/* mean over all but the batch, its gradient, and constant. */
#include "operator.h"

#include "ops/constant.h"

static cvy_status prepare_mean(struct cvy_device *device, const struct cvy_call *call,
                               struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_shape *x = &call->in[0].desc.shape;
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_mean, x->dim[0]);
    plan.step[0].row = plan.step[0].args.dim[0] = cvy_shape_count(x) / x->dim[0];
    return cuda_prepare_plan(device, call, &cuda_kernel_mean, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(mean, .supports = cuda_supports_half)

static cvy_status prepare_mean_backward(struct cvy_device *device, const struct cvy_call *call,
                                        struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_shape *dx = &call->out[0].desc.shape;
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_mean_backward, cvy_shape_count(dx));
    plan.step[0].args.dim[0] = dx->dim[0] ? plan.step[0].n / dx->dim[0] : 1;
    return cuda_prepare_plan(device, call, &cuda_kernel_mean_backward, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(mean_backward, .supports = cuda_supports_half)

static cvy_status prepare_constant(struct cvy_device *device, const struct cvy_call *call,
                                   struct cvy_kernel **out, size_t *scratch_bytes) {
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_constant, 1);
    plan.step[0].args.number[0] = (float)((const struct cvy_constant_attrs *)call->attrs)->value;
    return cuda_prepare_plan(device, call, &cuda_kernel_constant, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(constant, .supports = cuda_supports_half)
