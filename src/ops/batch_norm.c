/* batch_norm and its gradient.
   Over the m values of channel c in the shard: v = (x - mean) / sqrt(var + eps), y = v weight + bias
   (+ residual), then relu when fused. In evaluation mean and var are the running ones.
   `stats` is made to be summed over shards: {n mean, n unbiased variance, n} with n the images of the shard,
   so that the sum gives the image-weighted mean. A channel with a single value has no unbiased variance:
   that shard's stats are all zero, which leaves it out. */
#include "ops/batch_norm.h"
#include "ops/cases.h"
#include "ops/infer.h"

#include <math.h>
#include <string.h>

typedef struct cvy_batch_norm_attrs norm_attrs;

#define EPS \
    { "eps", CVY_ATTR_FLOAT, offsetof(norm_attrs, eps), 1e-5, 0, 1, "added to the variance" }
#define MOMENTUM \
    { "momentum", CVY_ATTR_FLOAT, offsetof(norm_attrs, momentum), 0.1, 0, 1, "for batch_norm_update" }
#define TRAINING                                                            \
    {                                                                       \
        "training", CVY_ATTR_BOOL, offsetof(norm_attrs, training), 1, 0, 1, \
            "normalise by the shard's own statistics"                       \
    }
#define RELU \
    { "relu", CVY_ATTR_BOOL, offsetof(norm_attrs, relu), 0, 0, 1, "a relu follows, in the same pass" }
#define SYNC                                                        \
    {                                                               \
        "sync", CVY_ATTR_BOOL, offsetof(norm_attrs, sync), 0, 0, 1, \
            "the statistics given are those of all shards"          \
    }
static const struct cvy_attr forward_attrs[] = {EPS, MOMENTUM, TRAINING, RELU, SYNC};
static const struct cvy_attr backward_attrs[] = {EPS, TRAINING, RELU};

/* ---- reference: x [images,channels,inner] ------------------------------------------------------- */

struct extent {
    int64_t images, channels, inner, m; /* m: values of one channel */
};

static struct extent extent_of(const struct cvy_desc *x) {
    int64_t images = x->shape.dim[0], channels = x->shape.dim[1];
    int64_t inner = cvy_shape_count(&x->shape) / (images * channels);
    return (struct extent){images, channels, inner, images * inner};
}

/* Position of value k of channel c, k = 0 … m - 1. */
static int64_t position(const struct extent *e, int64_t c, int64_t k) {
    return (k / e->inner * e->channels + c) * e->inner + k % e->inner;
}

/* Mean, and sum of the squared deviations from it. */
static void moments(const struct extent *e, const double *x, int64_t c, double *mean, double *m2) {
    *mean = *m2 = 0;
    for (int64_t k = 0; k < e->m; k++)
        *mean += x[position(e, c, k)];
    *mean /= (double)e->m;
    for (int64_t k = 0; k < e->m; k++) {
        double deviation = x[position(e, c, k)] - *mean;
        *m2 += deviation * deviation;
    }
}

static void normalise(const struct cvy_reference *call, const struct extent *e, int64_t c, double mean,
                      double var) {
    const norm_attrs *a = call->attrs;
    const double *x = call->in[CVY_BATCH_NORM_X];
    const double *residual = call->n_in > CVY_BATCH_NORM_RESIDUAL ? call->in[CVY_BATCH_NORM_RESIDUAL] : NULL;
    double scale = call->in[CVY_BATCH_NORM_WEIGHT][c] / sqrt(var + a->eps);
    double bias = call->in[CVY_BATCH_NORM_BIAS][c];
    for (int64_t k = 0; k < e->m; k++) {
        int64_t at = position(e, c, k);
        double y = (x[at] - mean) * scale + bias + (residual ? residual[at] : 0);
        if (a->relu) {
            call->out[CVY_BATCH_NORM_MASK][at] = y > 0;
            y = y <= 0 ? 0 : y;
        }
        call->out[CVY_BATCH_NORM_Y][at] = y;
    }
}

static void forward_reference(const struct cvy_reference *call) {
    const norm_attrs *a = call->attrs;
    struct extent e = extent_of(&call->in_desc[CVY_BATCH_NORM_X]);
    double *stats = call->out[CVY_BATCH_NORM_STATS];
    memset(stats, 0, (size_t)(2 * e.channels + 1) * sizeof *stats);
    for (int64_t c = 0; c < e.channels; c++) {
        double mean = call->in[CVY_BATCH_NORM_RUNNING_MEAN][c], var = call->in[CVY_BATCH_NORM_RUNNING_VAR][c];
        if (a->training) {
            double m2;
            moments(&e, call->in[CVY_BATCH_NORM_X], c, &mean, &m2);
            var = m2 / (double)e.m;
            if (e.m > 1) {
                stats[c] = (double)e.images * mean;
                stats[e.channels + c] = (double)e.images * m2 / (double)(e.m - 1);
            }
        }
        call->out[CVY_BATCH_NORM_MEAN][c] = mean;
        call->out[CVY_BATCH_NORM_VAR][c] = var;
        normalise(call, &e, c, mean, var);
    }
    if (a->training && e.m > 1)
        stats[2 * e.channels] = (double)e.images;
    if (!a->relu)
        call->out[CVY_BATCH_NORM_MASK][0] = 0;
}

enum { DY, X, WEIGHT, MEAN, VAR, MASK }; /* inputs of the gradient */
enum { DX, DWEIGHT, DBIAS, DRESIDUAL };  /* its outputs */

/* With u = dy behind the relu: dbias = sum u, dweight = sum u v, dresidual = u, and
   dx = weight / sqrt(var + eps) (u - [training] (dbias + v dweight) / m). */
static void backward_reference(const struct cvy_reference *call) {
    const norm_attrs *a = call->attrs;
    struct extent e = extent_of(&call->in_desc[X]);
    const double *mask = a->relu ? call->in[MASK] : NULL;
    for (int64_t c = 0; c < e.channels; c++) {
        double mean = call->in[MEAN][c], invstd = 1 / sqrt(call->in[VAR][c] + a->eps), dweight = 0, dbias = 0;
        for (int64_t k = 0; k < e.m; k++) {
            int64_t at = position(&e, c, k);
            double u = mask && mask[at] == 0 ? 0 : call->in[DY][at];
            call->out[DRESIDUAL][at] = u;
            dbias += u;
            dweight += u * (call->in[X][at] - mean) * invstd;
        }
        for (int64_t k = 0; k < e.m; k++) {
            int64_t at = position(&e, c, k);
            double v = (call->in[X][at] - mean) * invstd;
            double shift = a->training ? (dbias + v * dweight) / (double)e.m : 0;
            call->out[DX][at] = call->in[WEIGHT][c] * invstd * (call->out[DRESIDUAL][at] - shift);
        }
        call->out[DWEIGHT][c] = dweight;
        call->out[DBIAS][c] = dbias;
    }
}

/* ---- shapes, cost, gradient ---------------------------------------------------------------------- */

static cvy_status check_x(const struct cvy_infer *call, int i) {
    CVY_TRY(cvy_infer_float(call, i, NULL));
    if (call->in[i].shape.n < 2 || cvy_shape_count(&call->in[i].shape) == 0)
        return cvy_infer_fail(call, "%s must be N,C,… and not empty", call->op->in_names[i]);
    return CVY_OK;
}

static cvy_status forward_infer(struct cvy_infer *call) {
    const norm_attrs *a = call->attrs;
    CVY_TRY(check_x(call, CVY_BATCH_NORM_X));
    const struct cvy_desc *x = &call->in[CVY_BATCH_NORM_X];
    int64_t channels = x->shape.dim[1];
    for (int i = CVY_BATCH_NORM_WEIGHT; i <= CVY_BATCH_NORM_RUNNING_VAR; i++)
        CVY_TRY(cvy_infer_float(call, i, &CVY_SHAPE(channels)));
    if (cvy_infer_has(call, CVY_BATCH_NORM_RESIDUAL))
        CVY_TRY(cvy_infer_float(call, CVY_BATCH_NORM_RESIDUAL, &x->shape));
    call->out[CVY_BATCH_NORM_Y] = *x;
    call->out[CVY_BATCH_NORM_MEAN] = cvy_desc_make(CVY_F32, CVY_SHAPE(channels));
    call->out[CVY_BATCH_NORM_VAR] = cvy_desc_make(CVY_F32, CVY_SHAPE(channels));
    call->out[CVY_BATCH_NORM_STATS] = cvy_desc_make(CVY_F32, CVY_SHAPE(2 * channels + 1));
    call->out[CVY_BATCH_NORM_MASK] = cvy_desc_make(CVY_U8, a->relu ? x->shape : CVY_SHAPE(1));
    return CVY_OK;
}

static cvy_status backward_infer(struct cvy_infer *call) {
    const norm_attrs *a = call->attrs;
    CVY_TRY(check_x(call, X));
    const struct cvy_desc *x = &call->in[X];
    int64_t channels = x->shape.dim[1];
    CVY_TRY(cvy_infer_float(call, DY, &x->shape));
    for (int i = WEIGHT; i <= VAR; i++)
        CVY_TRY(cvy_infer_float(call, i, &CVY_SHAPE(channels)));
    if (a->relu && !cvy_infer_has(call, MASK))
        return cvy_infer_fail(call, "relu=true needs the mask of the forward pass");
    if (a->relu)
        CVY_TRY(cvy_infer_typed(call, MASK, CVY_U8, &x->shape));
    call->out[DX] = call->out[DRESIDUAL] = *x;
    call->out[DWEIGHT] = call->out[DBIAS] = cvy_desc_make(CVY_F32, CVY_SHAPE(channels));
    return CVY_OK;
}

/* Per value: two passes for the moments (4), then subtract, scale, shift. */
static void forward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    const norm_attrs *a = call->attrs;
    double per_value = 3 + (a->training ? 4 : 0) + a->relu + cvy_infer_has(call, CVY_BATCH_NORM_RESIDUAL);
    cvy_cost_fill(call, per_value * (double)cvy_shape_count(&call->in[0].shape), out);
}

static void backward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, 9 * (double)cvy_shape_count(&call->in[X].shape), out);
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    CVY_TRY(cvy_grad_check(g, node, gout));
    const norm_attrs *a = node->attrs;
    if (a->sync)
        return cvy_batch_norm_sync_grad(g, node, want, gout[0], gin);
    cvy_value in[] = {gout[0],
                      node->in[CVY_BATCH_NORM_X],
                      node->in[CVY_BATCH_NORM_WEIGHT],
                      node->out[CVY_BATCH_NORM_MEAN],
                      node->out[CVY_BATCH_NORM_VAR],
                      a->relu ? node->out[CVY_BATCH_NORM_MASK] : CVY_NONE};
    cvy_value out[4];
    bool has_residual = node->n_in > CVY_BATCH_NORM_RESIDUAL && node->in[CVY_BATCH_NORM_RESIDUAL] != CVY_NONE;
    CVY_TRY(cvy_graph_add_grad(g, node, "batch_norm_backward", a, in, CVY_N(in), out));
    /* one node gives them all; whoever reads none of them drops it */
    gin[CVY_BATCH_NORM_X] = out[DX];
    gin[CVY_BATCH_NORM_WEIGHT] = out[DWEIGHT];
    gin[CVY_BATCH_NORM_BIAS] = out[DBIAS];
    if (has_residual) /* without a relu the gradient passes unchanged */
        gin[CVY_BATCH_NORM_RESIDUAL] = a->relu ? out[DRESIDUAL] : gout[0];
    return CVY_OK;
}

/* ---- cases and descriptors ----------------------------------------------------------------------- */

/* Variances (input 4 of both) are positive, masks 0 or 1. */
static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    if (desc->dtype == CVY_U8)
        cvy_fill_below(i, desc, seed, 2, values);
    else if (i == CVY_BATCH_NORM_RUNNING_VAR)
        cvy_fill_uniform(i, desc, seed, 0.5, 2, values);
    else
        cvy_fill_normal(i, desc, seed, values);
}

#define VECTORS(c) " f32[" #c "] f32[" #c "] f32[" #c "] f32[" #c "]"
static void forward_remark(const struct cvy_infer *call, struct cvy_text *out) {
    const struct cvy_shape *x = &call->in[CVY_BATCH_NORM_X].shape;
    if (((const norm_attrs *)call->attrs)->training && cvy_shape_count(x) == x->dim[1])
        cvy_text_printf(
            out, "a shard of one image gives batch_norm one value a channel: its variance is 0 there and "
                 "it is left out of the running statistics; take fewer shards or a larger batch");
}

static const struct cvy_case forward_cases[] = {
    {"", "f32[2,3,4,4]" VECTORS(3) " -", 0, fill},
    {"", "f32[3,17,5,7]" VECTORS(17) " -", 0, fill},
    {"", "f32[1,64,3,3]" VECTORS(64) " -", 0, fill},
    {"", "f32[1,3,1,1]" VECTORS(3) " -", 0, fill}, /* one value a channel */
    {"", "f32[5,3]" VECTORS(3) " -", 0, fill},
    {"relu=true", "f32[3,17,5,7]" VECTORS(17) " -", 0, fill},
    {"relu=true", "f32[2,32,4,4]" VECTORS(32) " f32[2,32,4,4]", 0, fill},
    {"relu=true", "f32[1,16,3,3]" VECTORS(16) " f32[1,16,3,3]", 0, fill},
    {"", "f32[2,17,3,3]" VECTORS(17) " f32[2,17,3,3]", 0, fill},
    {"training=false", "f32[2,17,3,3]" VECTORS(17) " -", 0, fill},
    {"training=false relu=true eps=0.001", "f32[2,16,3,3]" VECTORS(16) " f32[2,16,3,3]", 0, fill},
};

#undef VECTORS
#define VECTORS(c) " f32[" #c "] f32[" #c "] f32[" #c "]"
static const struct cvy_case backward_cases[] = {
    {"", "f32[2,3,4,4] f32[2,3,4,4]" VECTORS(3) " -", 0, fill},
    {"", "f32[3,17,5,7] f32[3,17,5,7]" VECTORS(17) " -", 0, fill},
    {"", "f32[1,3,1,1] f32[1,3,1,1]" VECTORS(3) " -", 0, fill},
    {"relu=true", "f32[2,32,4,4] f32[2,32,4,4]" VECTORS(32) " u8[2,32,4,4]", 0, fill},
    {"relu=true", "f32[1,16,3,3] f32[1,16,3,3]" VECTORS(16) " u8[1,16,3,3]", 0, fill},
    {"training=false", "f32[2,17,3,3] f32[2,17,3,3]" VECTORS(17) " -", 0, fill},
    {"training=false relu=true", "f32[5,3] f32[5,3]" VECTORS(3) " u8[5,3]", 0, fill},
};

const struct cvy_op cvy_op_batch_norm = {
    .name = "batch_norm",
    .help = "y = (x - mean) / sqrt(var + eps) weight + bias + residual, per channel; then relu if asked",
    .attrs_size = sizeof(norm_attrs),
    .attrs = forward_attrs,
    .n_attrs = CVY_N(forward_attrs),
    .n_in = 6,
    .n_in_min = 5,
    .n_out = 5,
    .in_names = (const char *const[]){"x", "weight", "bias", "running_mean", "running_var", "residual"},
    .out_names = (const char *const[]){"y", "mean", "var", "stats", "mask"},
    .private_out = 1u << CVY_BATCH_NORM_MASK,
    .flags = CVY_OP_FOLLOWS | CVY_OP_NORM,
    .aliases = (const struct cvy_alias[]){{CVY_BATCH_NORM_Y, CVY_BATCH_NORM_X},
                                          {CVY_BATCH_NORM_Y, CVY_BATCH_NORM_RESIDUAL}},
    .n_aliases = 2,
    .narrow_in = 1u << 0 | 1u << 5,
    .infer = forward_infer,
    .grad = grad,
    .reference = forward_reference,
    .cost = forward_cost,
    .remark = forward_remark,
    .cases = forward_cases,
    .n_cases = CVY_N(forward_cases),
};

const struct cvy_op cvy_op_batch_norm_backward = {
    .name = "batch_norm_backward",
    .help = "dx, dweight, dbias, dresidual of batch_norm; dresidual is dy behind the relu",
    .attrs_size = sizeof(norm_attrs),
    .attrs = backward_attrs,
    .n_attrs = CVY_N(backward_attrs),
    .n_in = 6,
    .n_in_min = 5,
    .n_out = 4,
    .in_names = (const char *const[]){"dy", "x", "weight", "mean", "var", "mask"},
    .out_names = (const char *const[]){"dx", "dweight", "dbias", "dresidual"},
    .aliases = (const struct cvy_alias[]){{DX, DY}, {DRESIDUAL, DY}},
    .n_aliases = 2,
    .narrow_in = 1u << 0 | 1u << 1,
    .infer = backward_infer,
    .reference = backward_reference,
    .cost = backward_cost,
    .cases = backward_cases,
    .n_cases = CVY_N(backward_cases),
};
