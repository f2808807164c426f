/* layer_norm: a pixel's channels are a row. Its gradient: first the sums over pixels, since dx may lie where dy
   does. */
#include "operator.h"

#include "ops/layer_norm.h"

/* As loops over pixels of operand i see it: {channels, inner, pixels of all images}. */
static cvy_status view_of(const struct cvy_device *device, const struct cvy_call *call, int i,
                          int64_t dim[3]) {
    struct cuda_view v;
    if (!cuda_layout_view(call->in[i].layout, &call->in[i].desc, &v))
        return CVY_FAIL(CVY_ERR_FAILED, "%s: %s needs N,C,…", device->name, call->op->name);
    dim[0] = v.channels;
    dim[1] = v.channel == 1 ? 1 : v.pixels;
    dim[2] = v.n * v.pixels;
    return CVY_OK;
}

static cvy_status prepare_layer_norm(struct cvy_device *device, const struct cvy_call *call,
                                     struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_layer_norm_attrs *attrs = call->attrs;
    int64_t dim[3];
    CVY_TRY(view_of(device, call, 0, dim));
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_layer_norm, dim[2]);
    plan.step[0].args = (struct cuda_args){.dim = {dim[0], dim[1]}, .number = {(float)attrs->eps}};
    return cuda_prepare_plan(device, call, &cuda_kernel_layer_norm, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(layer_norm, .supports = cuda_supports_half, .choose = cuda_choose_first)

static cvy_status prepare_layer_norm_backward(struct cvy_device *device, const struct cvy_call *call,
                                              struct cvy_kernel **out, size_t *scratch_bytes) {
    enum { DY = CUDA_IN, X, WEIGHT, MEAN, RSTD };
    enum { DX = CUDA_OUT, DWEIGHT, DBIAS };
    int64_t dim[3];
    CVY_TRY(view_of(device, call, 1, dim));
    const struct cuda_step sums = {.function = CUDA_layer_norm_backward_sums,
                                   .n = dim[0],
                                   .row = dim[2],
                                   .is_near = dim[1] == 1,
                                   .in = {DY, X, MEAN, RSTD},
                                   .out = {DWEIGHT, DBIAS},
                                   .args = {.dim = {dim[0], dim[1]}}};
    const struct cuda_step slope = {.function = CUDA_layer_norm_backward,
                                    .n = dim[2],
                                    .in = {DY, X, MEAN, RSTD, WEIGHT},
                                    .out = {DX},
                                    .args = {.dim = {dim[0], dim[1]}}};
    const bool has_sums = !call->out[1].is_absent || !call->out[2].is_absent;
    struct cuda_plan plan = {0};
    if (has_sums)
        plan.step[plan.n_steps++] = sums;
    if (!call->out[0].is_absent)
        plan.step[plan.n_steps++] = slope;
    return cuda_prepare_plan(device, call, &cuda_kernel_layer_norm_backward, &plan, out, scratch_bytes);
}

/* x, input 1, was laid out by the forward pass. */
static cvy_status choose_x(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cuda_choose_like(call, 1);
    return CVY_OK;
}

CUDA_PLAN_KERNEL(layer_norm_backward, .supports = cuda_supports_half, .choose = choose_x)
