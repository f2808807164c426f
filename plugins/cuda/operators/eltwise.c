/* Activations and their gradients, add, casts and unscale: element by element, in whatever layout the first operand
   has, in place too. */
#include "operator.h"

#define ELTWISE_KERNEL(NAME)                                                                    \
    static cvy_status prepare_##NAME(struct cvy_device *device, const struct cvy_call *call,    \
                                     struct cvy_kernel **out, size_t *scratch_bytes) {          \
        const struct cuda_plan plan =                                                           \
            cuda_plan_simple(call, CUDA_##NAME, cvy_shape_count(&call->out[0].desc.shape));     \
        return cuda_prepare_plan(device, call, &cuda_kernel_##NAME, &plan, out, scratch_bytes); \
    }                                                                                           \
    CUDA_PLAN_KERNEL(NAME, .supports = cuda_supports_half, .choose = cuda_choose_first)
ELTWISE_KERNEL(relu)
ELTWISE_KERNEL(relu_backward)
ELTWISE_KERNEL(relu6)
ELTWISE_KERNEL(relu6_backward)
ELTWISE_KERNEL(sigmoid)
ELTWISE_KERNEL(sigmoid_backward)
ELTWISE_KERNEL(hardsigmoid)
ELTWISE_KERNEL(hardsigmoid_backward)
ELTWISE_KERNEL(hardswish)
ELTWISE_KERNEL(hardswish_backward)
ELTWISE_KERNEL(silu)
ELTWISE_KERNEL(silu_backward)
ELTWISE_KERNEL(gelu)
ELTWISE_KERNEL(gelu_backward)
ELTWISE_KERNEL(add)
ELTWISE_KERNEL(cast)
ELTWISE_KERNEL(unscale)
