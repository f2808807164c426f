/* What batch_norm needs of other shards: the running statistics' update, and for a batch_norm over all of them the
   row of a shard and the merge of all rows. */
#include "operator.h"

#include "ops/batch_norm.h"

static cvy_status prepare_batch_norm_update(struct cvy_device *device, const struct cvy_call *call,
                                            struct cvy_kernel **out, size_t *scratch_bytes) {
    const int64_t channels = call->in[0].desc.shape.dim[0];
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_batch_norm_update, channels);
    plan.step[0].args.dim[0] = channels;
    plan.step[0].args.number[0] = (float)((const struct cvy_batch_norm_attrs *)call->attrs)->momentum;
    return cuda_prepare_plan(device, call, &cuda_kernel_batch_norm_update, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(batch_norm_update, .supports = cuda_supports_f32)

static cvy_status prepare_batch_norm_moments(struct cvy_device *device, const struct cvy_call *call,
                                             struct cvy_kernel **out, size_t *scratch_bytes) {
    struct cuda_view v;
    if (!cuda_layout_view(call->in[0].layout, &call->in[0].desc, &v))
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "batch_norm_moments: x must be N,C,…");
    const struct cuda_plan plan = {.n_steps = 1,
                                   .step = {{.function = CUDA_batch_norm_moments,
                                             .n = v.channels,
                                             .row = v.n * v.pixels,
                                             .is_near = v.channel == 1,
                                             .in = {CUDA_IN},
                                             .out = {CUDA_OUT},
                                             .args = {.dim = {v.channels, v.channel == 1 ? 1 : v.pixels, v.n,
                                                              cvy_batch_norm_row(v.channels)}}}}};
    return cuda_prepare_plan(device, call, &cuda_kernel_batch_norm_moments, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(batch_norm_moments, .supports = cuda_supports_half, .choose = cuda_choose_first)

static cvy_status prepare_batch_norm_merge(struct cvy_device *device, const struct cvy_call *call,
                                           struct cvy_kernel **out, size_t *scratch_bytes) {
    const int64_t channels = ((const struct cvy_batch_norm_merge_attrs *)call->attrs)->channels;
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_batch_norm_merge, channels);
    plan.step[0].args.dim[0] = channels;
    plan.step[0].args.dim[1] = call->in[0].desc.shape.dim[0];
    plan.step[0].args.dim[2] = cvy_batch_norm_row(channels);
    return cuda_prepare_plan(device, call, &cuda_kernel_batch_norm_merge, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(batch_norm_merge, .supports = cuda_supports_f32)
