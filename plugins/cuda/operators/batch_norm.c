/* batch_norm: statistics of the shard, or given ones, into a table of the channels; then one pass over the elements. */
#include "operator.h"

#include "ops/batch_norm.h"

enum { X = CUDA_IN, WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR, RESIDUAL };
enum { Y = CUDA_OUT, MEAN, VAR, STATS, MASK };

static cvy_status prepare_batch_norm(struct cvy_device *device, const struct cvy_call *call,
                                     struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_batch_norm_attrs *attrs = call->attrs;
    const struct cvy_operand_spec *x = &call->in[CVY_BATCH_NORM_X];
    struct cuda_view v;
    if (!cuda_layout_view(x->layout, &x->desc, &v))
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "batch_norm: x must be N,C,…");
    const int64_t inner = v.channel == 1 ? 1 : v.pixels;
    const struct cuda_step of_shard = {
        .function = CUDA_batch_norm_stats,
        .n = v.channels,
        .row = v.n * v.pixels,
        .is_near = inner == 1,
        .in = {X, WEIGHT, BIAS},
        .out = {MEAN, VAR, STATS, CUDA_TABLE},
        .args = {.dim = {v.channels, inner, v.n}, .number = {(float)attrs->eps}}};
    const struct cuda_step given = {.function = CUDA_batch_norm_given,
                                    .n = v.channels,
                                    .in = {WEIGHT, RUNNING_MEAN, RUNNING_VAR, BIAS},
                                    .out = {MEAN, VAR, STATS, CUDA_TABLE},
                                    .args = {.dim = {v.channels}, .number = {(float)attrs->eps}}};
    const struct cuda_step apply = {.function = CUDA_batch_norm_apply,
                                    .n = v.n * v.channels * v.pixels,
                                    .in = {X, CUDA_TABLE, RESIDUAL},
                                    .out = {Y, MASK},
                                    .args = {.dim = {v.channels, inner, attrs->relu}}};
    const struct cuda_plan plan = {/* without a reader of y the layer runs for its statistics alone */
                                   .n_steps = call->out[CVY_BATCH_NORM_Y].is_absent ? 1 : 2,
                                   .step = {attrs->training ? of_shard : given, apply},
                                   .table_bytes = (size_t)v.channels * sizeof(struct cuda_quad_f32)};
    return cuda_prepare_plan(device, call, &cuda_kernel_batch_norm, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(batch_norm, .supports = cuda_supports_half, .choose = cuda_choose_first)
