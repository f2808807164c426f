/* The gradients of batch_norm: sums over the channels, then one pass over the elements; and both halves by themselves,
   for a batch_norm over all shards. */
#include "operator.h"

#include "ops/batch_norm.h"

typedef struct cvy_batch_norm_attrs norm_attrs;

/* x, input 1 of all of them, was laid out by the forward pass, and the mask with it. */
static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cuda_choose_like(call, 1);
    return CVY_OK;
}

static cvy_status view_of(const struct cvy_call *call, struct cuda_view *out, int64_t *inner) {
    if (!cuda_layout_view(call->in[1].layout, &call->in[1].desc, out))
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s: x must be N,C,…", call->op->name);
    *inner = out->channel == 1 ? 1 : out->pixels;
    return CVY_OK;
}

/* ---- all at once ---------------------------------------------------------------------------------------------- */

static cvy_status prepare_batch_norm_backward(struct cvy_device *device, const struct cvy_call *call,
                                              struct cvy_kernel **out, size_t *scratch_bytes) {
    enum { DY = CUDA_IN, X, WEIGHT, MEAN, VAR, MASK };
    enum { DX = CUDA_OUT, DWEIGHT, DBIAS, DRESIDUAL };
    const norm_attrs *attrs = call->attrs;
    const uint8_t mask = attrs->relu ? MASK : CUDA_NONE;
    struct cuda_view v;
    int64_t inner;
    CVY_TRY(view_of(call, &v, &inner));
    const int64_t m = v.n * v.pixels;
    const struct cuda_plan plan = {
        .n_steps = call->out[DX - CUDA_OUT].is_absent && call->out[DRESIDUAL - CUDA_OUT].is_absent ? 1 : 2,
        .step = {{.function = CUDA_batch_norm_backward_sums,
                  .n = v.channels,
                  .row = m,
                  .is_near = inner == 1,
                  .in = {DY, X, MEAN, VAR, mask, WEIGHT},
                  .out = {DWEIGHT, DBIAS, CUDA_TABLE},
                  .args = {.dim = {v.channels, inner, attrs->training ? m : 0},
                           .number = {(float)attrs->eps}}},
                 {.function = CUDA_batch_norm_backward_apply,
                  .n = m * v.channels,
                  .in = {DY, X, CUDA_TABLE, mask},
                  .out = {DX, DRESIDUAL},
                  .args = {.dim = {v.channels, inner}}}},
        .table_bytes = (size_t)v.channels * sizeof(struct cuda_quad_f32)};
    return cuda_prepare_plan(device, call, &cuda_kernel_batch_norm_backward, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(batch_norm_backward, .supports = cuda_supports_half, .choose = choose)

/* ---- over all shards ------------------------------------------------------------------------------------------ */

static cvy_status prepare_batch_norm_backward_sums(struct cvy_device *device, const struct cvy_call *call,
                                                   struct cvy_kernel **out, size_t *scratch_bytes) {
    enum { DY = CUDA_IN, X, MEAN, VAR, MASK };
    enum { ROW = CUDA_OUT, DWEIGHT, DBIAS };
    const norm_attrs *attrs = call->attrs;
    struct cuda_view v;
    int64_t inner;
    CVY_TRY(view_of(call, &v, &inner));
    const struct cuda_plan plan = {
        .n_steps = 1,
        .step = {{.function = CUDA_batch_norm_backward_sums,
                  .n = v.channels,
                  .row = v.n * v.pixels,
                  .is_near = inner == 1,
                  .in = {DY, X, MEAN, VAR, attrs->relu ? MASK : CUDA_NONE},
                  .out = {DWEIGHT, DBIAS, CUDA_NONE, ROW},
                  .args = {.dim = {v.channels, inner, 0, v.n * v.pixels, cvy_batch_norm_row(v.channels)},
                           .number = {(float)attrs->eps}}}}};
    return cuda_prepare_plan(device, call, &cuda_kernel_batch_norm_backward_sums, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(batch_norm_backward_sums, .supports = cuda_supports_half, .choose = choose)

/* Rows are float32 whatever x is. */
static bool supports_shift(const struct cvy_device *device, const struct cvy_call *call) {
    enum { ROWS = 5 };
    return cuda_supports_half(device, call) && call->in[ROWS].desc.dtype == CVY_F32;
}

static cvy_status prepare_batch_norm_backward_shift(struct cvy_device *device, const struct cvy_call *call,
                                                    struct cvy_kernel **out, size_t *scratch_bytes) {
    enum { DY = CUDA_IN, X, WEIGHT, MEAN, VAR, ROWS, MASK };
    enum { DX = CUDA_OUT, DRESIDUAL };
    const norm_attrs *attrs = call->attrs;
    struct cuda_view v;
    int64_t inner;
    CVY_TRY(view_of(call, &v, &inner));
    const int64_t n_rows = call->in[ROWS - CUDA_IN].desc.shape.dim[0];
    const struct cuda_plan plan = {
        .n_steps = 2,
        .step = {{.function = CUDA_batch_norm_backward_slope,
                  .n = v.channels,
                  .in = {ROWS, WEIGHT, MEAN, VAR},
                  .out = {CUDA_TABLE},
                  .args = {.dim = {v.channels, n_rows, cvy_batch_norm_row(v.channels)},
                           .number = {(float)attrs->eps}}},
                 {.function = CUDA_batch_norm_backward_apply,
                  .n = v.n * v.channels * v.pixels,
                  .in = {DY, X, CUDA_TABLE, attrs->relu ? MASK : CUDA_NONE},
                  .out = {DX, DRESIDUAL},
                  .args = {.dim = {v.channels, inner}}}},
        .table_bytes = (size_t)v.channels * sizeof(struct cuda_quad_f32)};
    return cuda_prepare_plan(device, call, &cuda_kernel_batch_norm_backward_shift, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(batch_norm_backward_shift, .supports = supports_shift, .choose = choose)
