/* reorder: plain to nhwc and back, of elements of any size. */
#include "operator.h"

static cvy_status prepare_reorder(struct cvy_device *device, const struct cvy_call *call,
                                  struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_desc *desc = &call->in[0].desc;
    int64_t n = cvy_shape_count(&desc->shape);
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_reorder, n);
    struct cuda_view view;
    int64_t *dim = plan.step[0].args.dim;
    dim[0] = dim[1] = 1;
    if (call->in[0].layout != call->out[0].layout && cuda_layout_view(NULL, desc, &view)) {
        dim[0] = view.channels;
        dim[1] = view.pixels;
    }
    dim[2] = call->out[0].layout == cuda_nhwc;
    dim[3] = n ? (int64_t)cvy_desc_bytes(desc) / n : 1;
    return cuda_prepare_plan(device, call, &cuda_kernel_reorder, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(reorder)
