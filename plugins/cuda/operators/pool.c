/* max_pool, avg_pool, adaptive_avg_pool and their gradients: one launch each, in nhwc. They are functions of our own,
   since cuDNN's mean something else: its gradient of max_pool wants x and y where ours has the winners, and its
   averages know neither windows that hang over the end nor adaptive bins. Gradients gather, so each sum has one
   order. */
#include "library.h"
#include "operator.h"

#include "functions/pool_window.h"
#include "ops/pool.h"

static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cuda_choose_nhwc(call);
    return CVY_OK;
}

static void fill_window(const struct cvy_pool_attrs *attrs, int64_t *dim) {
    for (int axis = 0; axis < 2; axis++) {
        dim[5 + axis] = attrs->kernel[axis];
        dim[7 + axis] = cvy_pool_stride(attrs, axis);
        dim[9 + axis] = attrs->padding[axis];
        dim[11 + axis] = attrs->dilation[axis];
    }
}

/* avg_pool has no dilation; its field is 0 there. */
static void fill_average(const struct cvy_pool_attrs *attrs, int64_t *dim) {
    fill_window(attrs, dim);
    dim[11] = dim[12] = 1;
    dim[13] = attrs->count_include_pad ? POOL_PADDED : POOL_VALID;
}

static void fill_adaptive(int64_t *dim) {
    dim[11] = dim[12] = 1;
    dim[13] = POOL_ADAPTIVE;
}

static struct cuda_plan plan_of(const struct cvy_call *call, enum cuda_function function, bool is_backward) {
    const struct cvy_operand_spec *large = is_backward ? &call->out[0] : &call->in[0];
    const struct cvy_operand_spec *small = is_backward ? &call->in[0] : &call->out[0];
    struct cuda_plan plan = cuda_plan_simple(call, function, cvy_shape_count(&call->out[0].desc.shape));
    int64_t *dim = plan.step[0].args.dim;
    dim[0] = large->desc.shape.dim[1];
    for (int axis = 0; axis < 2; axis++) {
        dim[1 + axis] = large->desc.shape.dim[2 + axis];
        dim[3 + axis] = small->desc.shape.dim[2 + axis];
    }
    dim[14] = large->layout == cuda_nhwc;
    return plan;
}

#define POOL_KERNEL(name, function, is_backward, fill)                                          \
    static cvy_status prepare_##name(struct cvy_device *device, const struct cvy_call *call,    \
                                     struct cvy_kernel **out, size_t *scratch_bytes) {          \
        struct cuda_plan plan = plan_of(call, function, is_backward);                           \
        fill;                                                                                   \
        return cuda_prepare_plan(device, call, &cuda_kernel_##name, &plan, out, scratch_bytes); \
    }                                                                                           \
    CUDA_PLAN_KERNEL(name, .supports = cuda_supports_half, .choose = choose)
#define DIM plan.step[0].args.dim
POOL_KERNEL(max_pool, CUDA_max_pool, false, fill_window(call->attrs, DIM))
POOL_KERNEL(max_pool_backward, CUDA_max_pool_backward, true, fill_window(call->attrs, DIM))
POOL_KERNEL(avg_pool, CUDA_avg_pool, false, fill_average(call->attrs, DIM))
POOL_KERNEL(avg_pool_backward, CUDA_avg_pool_backward, true, fill_average(call->attrs, DIM))
POOL_KERNEL(adaptive_avg_pool, CUDA_avg_pool, false, fill_adaptive(DIM))
POOL_KERNEL(adaptive_avg_pool_backward, CUDA_avg_pool_backward, true, fill_adaptive(DIM))
