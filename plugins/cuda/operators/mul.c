/* mul of one shape, or with a factor for each channel; the gradient of such factors is a fold over their elements. */
#include "operator.h"

#include "ops/mul.h"

static cvy_status prepare_mul(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                              size_t *scratch_bytes) {
    const struct cvy_desc *a = &call->in[0].desc, *b = &call->in[1].desc;
    const int64_t n = cvy_shape_count(&a->shape);
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_mul, n);
    struct cuda_view view;
    if (!cvy_shape_equal(&a->shape, &b->shape) && cuda_layout_view(call->in[0].layout, a, &view)) {
        plan.step[0].function = CUDA_mul_channel;
        plan.step[0].args =
            (struct cuda_args){.dim = {view.channels, view.channel, view.image, b->shape.n == 4}};
    }
    return cuda_prepare_plan(device, call, &cuda_kernel_mul, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(mul, .supports = cuda_supports_half, .choose = cuda_choose_first)

static cvy_status prepare_mul_backward(struct cvy_device *device, const struct cvy_call *call,
                                       struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_mul_attrs *attrs = call->attrs;
    const int64_t n = cvy_shape_count(&call->in[0].desc.shape);
    const int64_t rows = cvy_shape_count(&call->out[0].desc.shape);
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_mul_backward, rows);
    struct cuda_view view;
    if (!cuda_layout_view(call->in[0].layout, &call->in[0].desc, &view))
        return CVY_FAIL(CVY_ERR_FAILED, "%s: %s needs N,C,H,W", device->name, call->op->name);
    plan.step[0].row = rows ? n / rows : 0;
    plan.step[0].is_near = view.channel == 1;
    plan.step[0].args =
        (struct cuda_args){.dim = {view.channels, view.channel, view.pixels, attrs->per_image}};
    return cuda_prepare_plan(device, call, &cuda_kernel_mul_backward, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(mul_backward, .supports = cuda_supports_half, .choose = cuda_choose_first)
