/* batch_norm_backward_shift: the second half of the gradient of a batch_norm over all shards, and how both are put
   together. U, D, m = sum u, sum u (x - mean), values of a channel, added over the rows of all shards in the tree:
   dx = weight invstd (u - (U + (x - mean) invstd^2 D) / m), dresidual = u, invstd = 1 / sqrt(var + eps). */
#include "ops/batch_norm.h"
#include "ops/cases.h"
#include "ops/infer.h"

#include <math.h>
#include <string.h>

typedef struct cvy_batch_norm_attrs norm_attrs;

static const struct cvy_attr attr_table[] = {
    {"eps", CVY_ATTR_FLOAT, offsetof(norm_attrs, eps), 1e-5, 0, 1, "added to the variance"},
    {"relu", CVY_ATTR_BOOL, offsetof(norm_attrs, relu), 0, 0, 1, "a relu follows, in the same pass"},
};

enum { DY, X, WEIGHT, MEAN, VAR, ROWS, MASK };
enum { DX, DRESIDUAL };

/* Value k of the rows, summed in the node of `size` rows, a power of two, from `first` on. */
static double sum_rows(const struct cvy_reference *call, int64_t k, int64_t first, int64_t size) {
    int64_t n = call->in_desc[ROWS].shape.dim[0], width = call->in_desc[ROWS].shape.dim[1];
    if (size == 1)
        return call->in[ROWS][first * width + k];
    double left = sum_rows(call, k, first, size / 2);
    return first + size / 2 < n ? left + sum_rows(call, k, first + size / 2, size / 2) : left;
}

static void reference(const struct cvy_reference *call) {
    const norm_attrs *a = call->attrs;
    const struct cvy_shape *x = &call->in_desc[X].shape;
    int64_t images = x->dim[0], channels = x->dim[1], inner = cvy_shape_count(x) / (images * channels);
    int64_t size = 1;
    while (size < call->in_desc[ROWS].shape.dim[0])
        size *= 2;
    double m = sum_rows(call, 2 * channels, 0, size);
    for (int64_t i = 0; i < images * channels * inner; i++) {
        int64_t c = i / inner % channels;
        double u = a->relu && call->in[MASK][i] == 0 ? 0 : call->in[DY][i];
        double invstd = 1 / sqrt(call->in[VAR][c] + a->eps), d = call->in[X][i] - call->in[MEAN][c];
        double shift =
            sum_rows(call, c, 0, size) + d * invstd * invstd * sum_rows(call, channels + c, 0, size);
        call->out[DRESIDUAL][i] = u;
        call->out[DX][i] = call->in[WEIGHT][c] * invstd * (u - shift / m);
    }
}

static cvy_status infer(struct cvy_infer *call) {
    const norm_attrs *a = call->attrs;
    CVY_TRY(cvy_infer_float(call, X, NULL));
    const struct cvy_desc *x = &call->in[X];
    if (x->shape.n < 2 || cvy_shape_count(&x->shape) == 0)
        return cvy_infer_fail(call, "x must be N,C,… and not empty");
    int64_t channels = x->shape.dim[1];
    CVY_TRY(cvy_infer_float(call, DY, &x->shape));
    for (int i = WEIGHT; i <= VAR; i++)
        CVY_TRY(cvy_infer_float(call, i, &CVY_SHAPE(channels)));
    CVY_TRY(cvy_infer_rank(call, ROWS, 2));
    CVY_TRY(
        cvy_infer_float(call, ROWS, &CVY_SHAPE(call->in[ROWS].shape.dim[0], cvy_batch_norm_row(channels))));
    if (a->relu && !cvy_infer_has(call, MASK))
        return cvy_infer_fail(call, "relu=true needs the mask of the forward pass");
    if (a->relu)
        CVY_TRY(cvy_infer_typed(call, MASK, CVY_U8, &x->shape));
    call->out[DX] = call->out[DRESIDUAL] = *x;
    return CVY_OK;
}

static void cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, 5 * (double)cvy_shape_count(&call->in[X].shape), out);
}

/* Variances and counts are positive, masks 0 or 1. */
static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    if (i == MASK)
        cvy_fill_below(i, desc, seed, 2, values);
    else if (i == VAR || i == ROWS)
        cvy_fill_uniform(i, desc, seed, 0.5, 2, values);
    else
        cvy_fill_normal(i, desc, seed, values);
}

#define VECTORS(c) " f32[" #c "] f32[" #c "] f32[" #c "]"
static const struct cvy_case cases[] = {
    {"", "f32[2,3,4,4] f32[2,3,4,4]" VECTORS(3) " f32[1,16] -", 0, fill},
    {"", "f32[3,17,5,7] f32[3,17,5,7]" VECTORS(17) " f32[5,48] -", 0, fill},
    {"", "f32[1,3,1,1] f32[1,3,1,1]" VECTORS(3) " f32[2,16] -", 0, fill},
    {"relu=true", "f32[2,32,4,4] f32[2,32,4,4]" VECTORS(32) " f32[8,80] u8[2,32,4,4]", 0, fill},
    {"relu=true eps=0.001", "f32[5,3] f32[5,3]" VECTORS(3) " f32[3,16] u8[5,3]", 0, fill},
};

const struct cvy_op cvy_op_batch_norm_backward_shift = {
    .name = "batch_norm_backward_shift",
    .help = "dx and dresidual of batch_norm over all shards, from the rows of batch_norm_backward_sums",
    .attrs_size = sizeof(norm_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 7,
    .n_in_min = 6,
    .n_out = 2,
    .in_names = (const char *const[]){"dy", "x", "weight", "mean", "var", "rows", "mask"},
    .out_names = (const char *const[]){"dx", "dresidual"},
    .aliases = (const struct cvy_alias[]){{DX, DY}, {DRESIDUAL, DY}},
    .n_aliases = 2,
    .narrow_in = 1u << 0 | 1u << 1,
    .infer = infer,
    .reference = reference,
    .cost = cost,
    .cases = cases,
    .n_cases = CVY_N(cases),
};

cvy_status cvy_batch_norm_sync_grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want,
                                    cvy_value dy, cvy_value *gin) {
    const norm_attrs *a = node->attrs;
    cvy_value x = node->in[CVY_BATCH_NORM_X], mean = node->in[CVY_BATCH_NORM_RUNNING_MEAN];
    cvy_value var = node->in[CVY_BATCH_NORM_RUNNING_VAR];
    cvy_value mask = a->relu ? node->out[CVY_BATCH_NORM_MASK] : CVY_NONE;
    bool has_residual = node->n_in > CVY_BATCH_NORM_RESIDUAL && node->in[CVY_BATCH_NORM_RESIDUAL] != CVY_NONE;
    cvy_value sums[3], rows, shifted[2];
    CVY_TRY(cvy_graph_add_grad(g, node, "batch_norm_backward_sums", a, (cvy_value[]){dy, x, mean, var, mask},
                               5, sums));
    gin[CVY_BATCH_NORM_WEIGHT] = sums[1];
    gin[CVY_BATCH_NORM_BIAS] = sums[2];
    if (has_residual) /* without a relu the gradient passes unchanged */
        gin[CVY_BATCH_NORM_RESIDUAL] = dy;
    bool needs_u = has_residual && a->relu && (want >> CVY_BATCH_NORM_RESIDUAL & 1);
    if (!(want >> CVY_BATCH_NORM_X & 1) && !needs_u)
        return CVY_OK;
    /* as many rows as the forward pass exchanged */
    int32_t maker = cvy_graph_value(g, mean)->node;
    const struct cvy_node *merge = maker < 0 ? NULL : &g->nodes.data[maker];
    if (!merge || strcmp(merge->op->name, "batch_norm_merge") != 0)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s: sync=true needs statistics from batch_norm_merge",
                        node->name);
    struct cvy_exchange_rows_attrs exchange = {.shards = cvy_graph_value(g, merge->in[0])->desc.shape.dim[0]};
    CVY_TRY(cvy_graph_add_grad(g, node, "exchange_rows", &exchange, sums, 1, &rows));
    CVY_TRY(cvy_graph_add_grad(g, node, "batch_norm_backward_shift", a,
                               (cvy_value[]){dy, x, node->in[CVY_BATCH_NORM_WEIGHT], mean, var, rows, mask},
                               7, shifted));
    gin[CVY_BATCH_NORM_X] = shifted[DX];
    if (needs_u)
        gin[CVY_BATCH_NORM_RESIDUAL] = shifted[DRESIDUAL];
    return CVY_OK;
}
