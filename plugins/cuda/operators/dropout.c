/* dropout and its gradient, which are the same: y = mask x / (1 - p), the mask drawn anew (ops/dropout.h). Positions
   count in plain order, so tensors are plain. */
#include "operator.h"

#include "base/rng.h"
#include "ops/dropout.h"

static struct cuda_plan plan_of(const struct cvy_call *call) {
    const struct cvy_dropout_attrs *attrs = call->attrs;
    const struct cvy_shape *x = &call->in[0].desc.shape;
    const int64_t n = cvy_shape_count(x);
    const double p = attrs->training ? attrs->p : 0;
    /* the shard may begin and end within a position's four elements */
    struct cuda_plan plan = cuda_plan_simple(call, attrs->per_image ? CUDA_dropout_image : CUDA_dropout,
                                             attrs->per_image ? n : n / 4 + 2);
    plan.step[0].args =
        (struct cuda_args){.dim = {n, n / x->dim[0], (int64_t)ceil(p * 0x1p32), attrs->id, CVY_RNG_DROPOUT},
                           .number = {p < 1 ? (float)(1 / (1 - p)) : 0}};
    return plan;
}

static cvy_status prepare_dropout(struct cvy_device *device, const struct cvy_call *call,
                                  struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cuda_plan plan = plan_of(call);
    return cuda_prepare_plan(device, call, &cuda_kernel_dropout, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(dropout, .supports = cuda_supports_half)

static cvy_status prepare_dropout_backward(struct cvy_device *device, const struct cvy_call *call,
                                           struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cuda_plan plan = plan_of(call);
    return cuda_prepare_plan(device, call, &cuda_kernel_dropout_backward, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(dropout_backward, .supports = cuda_supports_half)
