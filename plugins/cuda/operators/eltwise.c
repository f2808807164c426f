/* relu, its gradient, and add: element by element, in whatever layout the first operand has, in place too. */
#include "operator.h"

static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cuda_choose_like(call, 0);
    return CVY_OK;
}

#define ELTWISE_KERNEL(NAME)                                                                 \
    static cvy_status prepare_##NAME(struct cvy_device *device, const struct cvy_call *call, \
                                     struct cvy_kernel **out, size_t *scratch_bytes) {       \
        const struct cuda_plan plan = {.function = CUDA_##NAME,                              \
                                       .n = cvy_shape_count(&call->out[0].desc.shape)};      \
        *scratch_bytes = 0;                                                                  \
        return cuda_prepare_launch(device, call, &cuda_kernel_##NAME, &plan, out);           \
    }                                                                                        \
    const struct cvy_kernel_impl cuda_kernel_##NAME = {                                      \
        .op = #NAME,                                                                         \
        .choose = choose,                                                                    \
        .prepare = prepare_##NAME,                                                           \
        .run = cuda_run_launch,                                                              \
        .release = cuda_release_launch,                                                      \
    };
ELTWISE_KERNEL(relu)
ELTWISE_KERNEL(relu_backward)
ELTWISE_KERNEL(add)
