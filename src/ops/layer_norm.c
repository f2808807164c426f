/* layer_norm over the channels of each pixel, and its gradient: of N,C it is nn.LayerNorm, of N,C,H,W what
   torchvision calls LayerNorm2d. Over the C values of a pixel: rstd = 1 / sqrt(var + eps), v = (x - mean) rstd,
   y = v weight + bias. mean and rstd, a number for each pixel, are for the gradient. */
#include "ops/layer_norm.h"
#include "ops/cases.h"
#include "ops/infer.h"

#include <math.h>
#include <string.h>

typedef struct cvy_layer_norm_attrs norm_attrs;

static const struct cvy_attr attr_table[] = {
    {"eps", CVY_ATTR_FLOAT, offsetof(norm_attrs, eps), 1e-5, 0, 1, "added to the variance"},
};

enum { X, WEIGHT, BIAS };               /* inputs */
enum { Y, MEAN, RSTD };                 /* outputs */
enum { DY, BX, BWEIGHT, BMEAN, BRSTD }; /* inputs of the gradient */
enum { DX, DWEIGHT, DBIAS };            /* its outputs */

/* ---- reference: x [images,channels,inner] ------------------------------------------------------- */

struct extent {
    int64_t channels, inner, n_pixels; /* n_pixels: of all images */
};

static struct extent extent_of(const struct cvy_shape *x) {
    int64_t n = cvy_shape_count(x), channels = x->dim[1];
    return (struct extent){channels, n / (x->dim[0] * channels), n / channels};
}

/* Position of channel c of pixel k, counted over all images. */
static int64_t position(const struct extent *e, int64_t k, int64_t c) {
    return (k / e->inner * e->channels + c) * e->inner + k % e->inner;
}

static void forward_reference(const struct cvy_reference *call) {
    const struct extent e = extent_of(&call->in_desc[X].shape);
    const double *x = call->in[X], eps = ((const norm_attrs *)call->attrs)->eps;
    for (int64_t k = 0; k < e.n_pixels; k++) {
        double mean = 0, m2 = 0;
        for (int64_t c = 0; c < e.channels; c++)
            mean += x[position(&e, k, c)] / (double)e.channels;
        for (int64_t c = 0; c < e.channels; c++) {
            double deviation = x[position(&e, k, c)] - mean;
            m2 += deviation * deviation;
        }
        double rstd = 1 / sqrt(m2 / (double)e.channels + eps);
        for (int64_t c = 0; c < e.channels; c++) {
            int64_t at = position(&e, k, c);
            call->out[Y][at] = (x[at] - mean) * rstd * call->in[WEIGHT][c] + call->in[BIAS][c];
        }
        call->out[MEAN][k] = mean;
        call->out[RSTD][k] = rstd;
    }
}

/* With g = dy weight and means over the channels of the pixel: dx = rstd (g - mean of g - v mean of g v);
   over the pixels: dweight = sum dy v, dbias = sum dy. */
static void backward_reference(const struct cvy_reference *call) {
    const struct extent e = extent_of(&call->in_desc[BX].shape);
    memset(call->out[DWEIGHT], 0, (size_t)e.channels * sizeof(double));
    memset(call->out[DBIAS], 0, (size_t)e.channels * sizeof(double));
    for (int64_t k = 0; k < e.n_pixels; k++) {
        double mean = call->in[BMEAN][k], rstd = call->in[BRSTD][k], mean_g = 0, mean_gv = 0;
        for (int64_t c = 0; c < e.channels; c++) {
            int64_t at = position(&e, k, c);
            double dy = call->in[DY][at], v = (call->in[BX][at] - mean) * rstd;
            mean_g += dy * call->in[BWEIGHT][c] / (double)e.channels;
            mean_gv += dy * call->in[BWEIGHT][c] * v / (double)e.channels;
            call->out[DWEIGHT][c] += dy * v;
            call->out[DBIAS][c] += dy;
        }
        for (int64_t c = 0; c < e.channels; c++) {
            int64_t at = position(&e, k, c);
            double v = (call->in[BX][at] - mean) * rstd;
            call->out[DX][at] = rstd * (call->in[DY][at] * call->in[BWEIGHT][c] - mean_g - v * mean_gv);
        }
    }
}

/* ---- shapes, cost, gradient ---------------------------------------------------------------------- */

static cvy_status check_x(const struct cvy_infer *call, int i) {
    CVY_TRY(cvy_infer_float(call, i, NULL));
    if (call->in[i].shape.n < 2 || cvy_shape_count(&call->in[i].shape) == 0)
        return cvy_infer_fail(call, "%s must be N,C,… and not empty", call->op->in_names[i]);
    return CVY_OK;
}

/* x without its channels. */
static struct cvy_shape pixels_of(const struct cvy_shape *x) {
    struct cvy_shape shape = *x;
    for (int k = 1; k + 1 < x->n; k++)
        shape.dim[k] = x->dim[k + 1];
    shape.dim[--shape.n] = 0;
    return shape;
}

static cvy_status forward_infer(struct cvy_infer *call) {
    CVY_TRY(check_x(call, X));
    const struct cvy_desc *x = &call->in[X];
    CVY_TRY(cvy_infer_float(call, WEIGHT, &CVY_SHAPE(x->shape.dim[1])));
    CVY_TRY(cvy_infer_float(call, BIAS, &CVY_SHAPE(x->shape.dim[1])));
    call->out[Y] = *x;
    call->out[MEAN] = call->out[RSTD] = cvy_desc_make(CVY_F32, pixels_of(&x->shape));
    return CVY_OK;
}

static cvy_status backward_infer(struct cvy_infer *call) {
    CVY_TRY(check_x(call, BX));
    const struct cvy_desc *x = &call->in[BX];
    const struct cvy_shape pixels = pixels_of(&x->shape);
    CVY_TRY(cvy_infer_float(call, DY, &x->shape));
    CVY_TRY(cvy_infer_float(call, BWEIGHT, &CVY_SHAPE(x->shape.dim[1])));
    CVY_TRY(cvy_infer_float(call, BMEAN, &pixels));
    CVY_TRY(cvy_infer_float(call, BRSTD, &pixels));
    call->out[DX] = *x;
    call->out[DWEIGHT] = call->out[DBIAS] = cvy_desc_make(CVY_F32, CVY_SHAPE(x->shape.dim[1]));
    return CVY_OK;
}

/* Per value: its part of mean and variance (4), then subtract, two products, shift. */
static void forward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, 8 * (double)cvy_shape_count(&call->in[X].shape), out);
}

static void backward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, 12 * (double)cvy_shape_count(&call->in[BX].shape), out);
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    const cvy_value in[] = {gout[Y], node->in[X], node->in[WEIGHT], node->out[MEAN], node->out[RSTD]};
    (void)want; /* one node gives them all; whoever reads none of them drops it */
    CVY_TRY(cvy_grad_check(g, node, gout));
    return cvy_graph_add_grad(g, node, "layer_norm_backward", node->attrs, in, CVY_N(in), gin);
}

/* ---- cases and descriptors ----------------------------------------------------------------------- */

/* The gradient's rstd is positive. */
static void fill_backward(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    if (i == BRSTD)
        cvy_fill_uniform(i, desc, seed, 0.5, 2, values);
    else
        cvy_fill_normal(i, desc, seed, values);
}

static const struct cvy_case forward_cases[] = {
    {"", "f32[2,3,4,4] f32[3] f32[3]", 0, NULL},
    {"", "f32[3,17,5,7] f32[17] f32[17]", 0, NULL},
    {"eps=1e-6", "f32[2,64,3,3] f32[64] f32[64]", 0, NULL},
    {"eps=1e-6", "f32[3,40,9,11] f32[40] f32[40]", 0, NULL},
    {"eps=0.1", "f32[3,200,1,1] f32[200] f32[200]", 0, NULL},
    {"", "f32[5,33] f32[33] f32[33]", 0, NULL},
};

static const struct cvy_case backward_cases[] = {
    {"", "f32[2,3,4,4] f32[2,3,4,4] f32[3] f32[2,4,4] f32[2,4,4]", 0, fill_backward},
    {"", "f32[3,17,5,7] f32[3,17,5,7] f32[17] f32[3,5,7] f32[3,5,7]", 0, fill_backward},
    {"", "f32[2,64,3,3] f32[2,64,3,3] f32[64] f32[2,3,3] f32[2,3,3]", 0, fill_backward},
    {"", "f32[3,40,9,11] f32[3,40,9,11] f32[40] f32[3,9,11] f32[3,9,11]", 0, fill_backward},
    {"", "f32[3,200,1,1] f32[3,200,1,1] f32[200] f32[3,1,1] f32[3,1,1]", 0, fill_backward},
    {"", "f32[5,33] f32[5,33] f32[33] f32[5] f32[5]", 0, fill_backward},
};

const struct cvy_op cvy_op_layer_norm = {
    .name = "layer_norm",
    .help = "y = (x - mean) / sqrt(var + eps) weight + bias, over the channels of each pixel",
    .attrs_size = sizeof(norm_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 3,
    .n_in_min = 3,
    .n_out = 3,
    .in_names = (const char *const[]){"x", "weight", "bias"},
    .out_names = (const char *const[]){"y", "mean", "rstd"},
    .flags = CVY_OP_FOLLOWS | CVY_OP_NORM,
    .aliases = (const struct cvy_alias[]){{Y, X}},
    .n_aliases = 1,
    .narrow_in = 1u << X,
    .infer = forward_infer,
    .grad = grad,
    .reference = forward_reference,
    .cost = forward_cost,
    .cases = forward_cases,
    .n_cases = CVY_N(forward_cases),
};

const struct cvy_op cvy_op_layer_norm_backward = {
    .name = "layer_norm_backward",
    .help = "dx, dweight, dbias of layer_norm",
    .attrs_size = sizeof(norm_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 5,
    .n_in_min = 5,
    .n_out = 3,
    .in_names = (const char *const[]){"dy", "x", "weight", "mean", "rstd"},
    .out_names = (const char *const[]){"dx", "dweight", "dbias"},
    .aliases = (const struct cvy_alias[]){{DX, DY}},
    .n_aliases = 1,
    .narrow_in = 1u << DY | 1u << BX,
    .infer = backward_infer,
    .reference = backward_reference,
    .cost = backward_cost,
    .cases = backward_cases,
    .n_cases = CVY_N(backward_cases),
};
