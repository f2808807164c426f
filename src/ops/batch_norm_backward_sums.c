/* batch_norm_backward_sums: the first half of the gradient of a batch_norm over all shards, up to where a shard must
   know of the others. With u = dy behind the relu: row = sum u, sum u (x - mean), values of a channel;
   dbias = sum u, dweight = sum u (x - mean) / sqrt(var + eps), of this shard. */
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

enum { DY, X, MEAN, VAR, MASK };
enum { ROW, DWEIGHT, DBIAS };

static void reference(const struct cvy_reference *call) {
    const norm_attrs *a = call->attrs;
    const struct cvy_shape *x = &call->in_desc[X].shape;
    int64_t images = x->dim[0], channels = x->dim[1], inner = cvy_shape_count(x) / (images * channels);
    double *row = call->out[ROW];
    memset(row, 0, (size_t)cvy_batch_norm_row(channels) * sizeof *row);
    for (int64_t i = 0; i < images * channels * inner; i++) {
        int64_t c = i / inner % channels;
        double u = a->relu && call->in[MASK][i] == 0 ? 0 : call->in[DY][i];
        row[c] += u;
        row[channels + c] += u * (call->in[X][i] - call->in[MEAN][c]);
    }
    row[2 * channels] = (double)(images * inner);
    for (int64_t c = 0; c < channels; c++) {
        call->out[DBIAS][c] = row[c];
        call->out[DWEIGHT][c] = row[channels + c] / sqrt(call->in[VAR][c] + a->eps);
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
    CVY_TRY(cvy_infer_float(call, MEAN, &CVY_SHAPE(channels)));
    CVY_TRY(cvy_infer_float(call, VAR, &CVY_SHAPE(channels)));
    if (a->relu && !cvy_infer_has(call, MASK))
        return cvy_infer_fail(call, "relu=true needs the mask of the forward pass");
    if (a->relu)
        CVY_TRY(cvy_infer_typed(call, MASK, CVY_U8, &x->shape));
    call->out[ROW] = cvy_desc_make(CVY_F32, CVY_SHAPE(cvy_batch_norm_row(channels)));
    call->out[DWEIGHT] = call->out[DBIAS] = cvy_desc_make(CVY_F32, CVY_SHAPE(channels));
    return CVY_OK;
}

static void cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, 4 * (double)cvy_shape_count(&call->in[X].shape), out);
}

/* Variances are positive, masks 0 or 1. */
static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    if (i == MASK)
        cvy_fill_below(i, desc, seed, 2, values);
    else if (i == VAR)
        cvy_fill_uniform(i, desc, seed, 0.5, 2, values);
    else
        cvy_fill_normal(i, desc, seed, values);
}

static const struct cvy_case cases[] = {
    {"", "f32[2,3,4,4] f32[2,3,4,4] f32[3] f32[3] -", 0, fill},
    {"", "f32[3,17,5,7] f32[3,17,5,7] f32[17] f32[17] -", 0, fill},
    {"", "f32[1,3,1,1] f32[1,3,1,1] f32[3] f32[3] -", 0, fill},
    {"relu=true", "f32[2,32,4,4] f32[2,32,4,4] f32[32] f32[32] u8[2,32,4,4]", 0, fill},
    {"relu=true eps=0.001", "f32[5,3] f32[5,3] f32[3] f32[3] u8[5,3]", 0, fill},
};

const struct cvy_op cvy_op_batch_norm_backward_sums = {
    .name = "batch_norm_backward_sums",
    .help = "row = sum u [C], sum u (x - mean) [C], values of a channel, zeros; dweight, dbias; u = dy "
            "behind the relu",
    .attrs_size = sizeof(norm_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 5,
    .n_in_min = 4,
    .n_out = 3,
    .in_names = (const char *const[]){"dy", "x", "mean", "var", "mask"},
    .out_names = (const char *const[]){"row", "dweight", "dbias"},
    .narrow_in = 1u << 0 | 1u << 1,
    .infer = infer,
    .reference = reference,
    .cost = cost,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
