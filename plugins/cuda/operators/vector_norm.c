/* vector_norm: a fold over all of a tensor, in whatever layout. */
#include "operator.h"

static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    call->out[0].layout = NULL;
    return CVY_OK;
}

static cvy_status prepare_vector_norm(struct cvy_device *device, const struct cvy_call *call,
                                      struct cvy_kernel **out, size_t *scratch_bytes) {
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_vector_norm, 1);
    plan.step[0].row = cvy_shape_count(&call->in[0].desc.shape);
    return cuda_prepare_plan(device, call, &cuda_kernel_vector_norm, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(vector_norm, .supports = cuda_supports_f32, .choose = choose)
