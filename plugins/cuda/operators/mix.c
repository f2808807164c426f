/* MixUp and CutMix: a draw for the update, then image by image. Tensors are plain. */
#include "operator.h"

#include "base/rng.h"
#include "ops/mix.h"

static cvy_status prepare_mix_draw(struct cvy_device *device, const struct cvy_call *call,
                                   struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_mix_draw_attrs *attrs = call->attrs;
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_mix_draw, 1);
    plan.step[0].args = (struct cuda_args){.dim = {attrs->image[0], attrs->image[1], CVY_RNG_MIX}};
    if (attrs->training) {
        plan.step[0].args.number[0] = (float)attrs->mixup_alpha;
        plan.step[0].args.number[1] = (float)attrs->cutmix_alpha;
    }
    return cuda_prepare_plan(device, call, &cuda_kernel_mix_draw, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(mix_draw, .supports = cuda_supports_f32)

static cvy_status prepare_mix(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                              size_t *scratch_bytes) {
    const struct cvy_shape *x = &call->in[0].desc.shape;
    const int64_t n = cvy_shape_count(x);
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_mix, n);
    plan.step[0].args = (struct cuda_args){.dim = {x->dim[0], n / x->dim[0], x->dim[2], x->dim[3]}};
    return cuda_prepare_plan(device, call, &cuda_kernel_mix, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(mix, .supports = cuda_supports_f32)

static cvy_status prepare_mix_targets(struct cvy_device *device, const struct cvy_call *call,
                                      struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_shape *targets = &call->out[0].desc.shape;
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_mix_targets, cvy_shape_count(targets));
    plan.step[0].args = (struct cuda_args){.dim = {targets->dim[0], targets->dim[1]}};
    return cuda_prepare_plan(device, call, &cuda_kernel_mix_targets, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(mix_targets, .supports = cuda_supports_f32)
