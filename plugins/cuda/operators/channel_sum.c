/* channel_sum: a fold over each channel. */
#include "operator.h"

#include "ops/channel_sum.h"

static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    const struct cvy_channel_sum_attrs *attrs = call->attrs;
    if (attrs->axis == 1)
        cuda_choose_like(call, 0);
    else
        call->in[0].layout = NULL;
    return CVY_OK;
}

static cvy_status prepare_channel_sum(struct cvy_device *device, const struct cvy_call *call,
                                      struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_channel_sum_attrs *attrs = call->attrs;
    const struct cvy_shape *x = &call->in[0].desc.shape;
    int axis = (int)(attrs->axis < 0 ? attrs->axis + x->n : attrs->axis);
    int64_t inner = 1, channels = x->dim[axis];
    for (int k = axis + 1; k < x->n && call->in[0].layout != cuda_nhwc; k++)
        inner *= x->dim[k];
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_channel_sum, channels);
    plan.step[0].row = channels ? cvy_shape_count(x) / channels : 0;
    plan.step[0].is_near = inner == 1;
    plan.step[0].args.dim[0] = channels;
    plan.step[0].args.dim[1] = inner;
    return cuda_prepare_plan(device, call, &cuda_kernel_channel_sum, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(channel_sum, .supports = cuda_supports_half, .choose = choose)
