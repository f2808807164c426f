/* conv2d and its two gradients by functions of our own: plain sums, slow, but for any attributes. */
#include "operators/conv2d.h"

#include "ops/conv2d.h"

static const struct cvy_kernel_impl own_kernel = {
    .op = "conv2d and its gradients", .run = cuda_run_plan, .release = cuda_release_plan};

cvy_status cuda_conv_own(struct cvy_device *device, const struct cvy_call *call,
                         const struct cvy_operand_spec *x, const struct cvy_operand_spec *y,
                         struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_conv2d_attrs *attrs = call->attrs;
    bool is_forward = y == &call->out[0], is_data = x == &call->out[0];
    enum cuda_function function = is_forward ? CUDA_conv_forward
                                  : is_data  ? CUDA_conv_data
                                             : CUDA_conv_weights;
    struct cuda_plan plan = cuda_plan_simple(call, function, cvy_shape_count(&call->out[0].desc.shape));
    int64_t *dim = plan.step[0].args.dim;
    for (int k = 0; k < 3; k++) {
        dim[k] = x->desc.shape.dim[1 + k];
        dim[3 + k] = y->desc.shape.dim[1 + k];
    }
    for (int axis = 0; axis < 2; axis++) {
        dim[6 + axis] = attrs->kernel[axis];
        dim[8 + axis] = attrs->stride[axis];
        dim[10 + axis] = attrs->padding[axis];
        dim[12 + axis] = attrs->dilation[axis];
    }
    dim[14] = attrs->groups;
    dim[15] = x->desc.shape.dim[0];
    return cuda_prepare_plan(device, call, &own_kernel, &plan, out, scratch_bytes);
}
