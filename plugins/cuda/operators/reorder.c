/* reorder: plain to nhwc and back. */
#include "operator.h"

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    struct cuda_plan plan = {.function = CUDA_reorder, .n = cvy_shape_count(&call->in[0].desc.shape)};
    struct cuda_view view;
    *scratch_bytes = 0;
    plan.args.dim[0] = plan.args.dim[1] = 1;
    if (call->in[0].layout != call->out[0].layout && cuda_layout_view(NULL, &call->in[0].desc, &view)) {
        plan.args.dim[0] = view.channels;
        plan.args.dim[1] = view.pixels;
    }
    plan.args.dim[2] = call->out[0].layout == cuda_nhwc;
    return cuda_prepare_launch(device, call, &cuda_kernel_reorder, &plan, out);
}

const struct cvy_kernel_impl cuda_kernel_reorder = {
    .op = "reorder",
    .prepare = prepare,
    .run = cuda_run_launch,
    .release = cuda_release_launch,
};
