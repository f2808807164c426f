/* Convolutions and products by functions of our own. */
#include "operators/own_products.h"

#include "ops/conv2d.h"

/* They are many times slower than a library's: whoever wonders about that reads why, once. */
static void say_once(struct cuda_device *me, const char *library, const struct cvy_call *call) {
    if (!me->has_own_products)
        cvy_log(me->base.spec.log, CVY_LOG_WARNING,
                "%s: %s has no %salgorithm for a call of %s: a slow function takes its place", me->base.name,
                library, me->base.spec.is_nondeterministic ? "" : "deterministic ", call->op->name);
    me->has_own_products = true;
}

static const struct cvy_kernel_impl own_kernel = {
    .op = "sums of products", .run = cuda_run_plan, .release = cuda_release_plan};

/* The function for the operand that is the call's output. */
static struct cuda_plan plan_of(const struct cvy_call *call, const struct cvy_operand_spec *x,
                                const struct cvy_operand_spec *y) {
    enum cuda_function function = y == &call->out[0]   ? CUDA_conv_forward
                                  : x == &call->out[0] ? CUDA_conv_data
                                                       : CUDA_conv_weights;
    return cuda_plan_simple(call, function, cvy_shape_count(&call->out[0].desc.shape));
}

cvy_status cuda_own_conv(struct cvy_device *device, const struct cvy_call *call,
                         const struct cvy_operand_spec *x, const struct cvy_operand_spec *y,
                         struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_conv2d_attrs *attrs = call->attrs;
    struct cuda_plan plan = plan_of(call, x, y);
    say_once(cuda_device(device), "cuDNN", call);
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

/* Rows are images of one pixel, and weights kernels of one tap. */
cvy_status cuda_own_linear(struct cvy_device *device, const struct cvy_call *call,
                           const struct cvy_operand_spec *x, const struct cvy_operand_spec *y,
                           struct cvy_kernel **out, size_t *scratch_bytes) {
    struct cuda_plan plan = plan_of(call, x, y);
    const struct cvy_shape *x_shape = &x->desc.shape, *y_shape = &y->desc.shape;
    say_once(cuda_device(device), "cuBLASLt", call);
    int64_t n_in = x_shape->dim[x_shape->n - 1], n_out = y_shape->dim[y_shape->n - 1];
    int64_t rows = cvy_shape_count(x_shape) / n_in;
    const int64_t dims[] = {n_in, 1, 1, n_out, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, rows};
    for (size_t k = 0; k < sizeof dims / sizeof *dims; k++)
        plan.step[0].args.dim[k] = dims[k];
    return cuda_prepare_plan(device, call, &own_kernel, &plan, out, scratch_bytes);
}
