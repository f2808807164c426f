/* cross_entropy of logits and labels, and its gradient. With K classes, smoothing s and p = softmax(logits):
     losses[n] = -(1 - s) log p[n,label] - s / K sum over k of log p[n,k]
     loss      = sum of losses / divisor, where the divisor is the global batch
     dlogits   = dloss / divisor (p - (1 - s) [k = label] - s / K)
   A label outside 0 … K - 1 makes the image's loss and gradient NaN: it is not hidden. */
#include "ops/cross_entropy.h"
#include "ops/cases.h"
#include "ops/infer.h"

#include <math.h>

typedef struct cvy_cross_entropy_attrs entropy_attrs;

static const struct cvy_attr attr_table[] = {
    {"label_smoothing", CVY_ATTR_FLOAT, offsetof(entropy_attrs, label_smoothing), 0, 0, 1,
     "share of the target that is spread over all classes"},
};

enum { LOGITS, LABELS, DIVISOR };                                 /* inputs */
enum { DLOSS, PROBABILITIES, BACKWARD_LABELS, BACKWARD_DIVISOR }; /* inputs of the gradient */

static const struct cvy_shape one = {.n = 1, .dim = {1}};

/* ---- reference: logits [N,K] --------------------------------------------------------------------- */

double cvy_log_sum_exp(const double *x, int64_t n) {
    double largest = x[0], sum = 0;
    for (int64_t k = 1; k < n; k++)
        largest = x[k] > largest ? x[k] : largest;
    for (int64_t k = 0; k < n; k++)
        sum += exp(x[k] - largest);
    return largest + log(sum);
}

static void forward_reference(const struct cvy_reference *call) {
    int64_t images = call->in_desc[LOGITS].shape.dim[0], n_classes = call->in_desc[LOGITS].shape.dim[1];
    double smoothing = ((const entropy_attrs *)call->attrs)->label_smoothing, total = 0;
    for (int64_t n = 0; n < images; n++) {
        const double *x = call->in[LOGITS] + n * n_classes;
        double lse = cvy_log_sum_exp(x, n_classes), sum_log_p = 0, label = call->in[LABELS][n];
        for (int64_t k = 0; k < n_classes; k++) {
            sum_log_p += x[k] - lse;
            call->out[CVY_CROSS_ENTROPY_PROBABILITIES][n * n_classes + k] = exp(x[k] - lse);
        }
        double log_p = label >= 0 && label < (double)n_classes ? x[(int64_t)label] - lse : NAN;
        double loss = -(1 - smoothing) * log_p - smoothing / (double)n_classes * sum_log_p;
        call->out[CVY_CROSS_ENTROPY_LOSSES][n] = loss;
        total += loss;
    }
    call->out[CVY_CROSS_ENTROPY_LOSS][0] = total / call->in[DIVISOR][0];
}

static void backward_reference(const struct cvy_reference *call) {
    int64_t images = call->out_desc[0].shape.dim[0], n_classes = call->out_desc[0].shape.dim[1];
    double smoothing = ((const entropy_attrs *)call->attrs)->label_smoothing;
    double scale = call->in[DLOSS][0] / call->in[BACKWARD_DIVISOR][0];
    for (int64_t n = 0; n < images; n++) {
        double label = call->in[BACKWARD_LABELS][n];
        double image_scale = label >= 0 && label < (double)n_classes ? scale : NAN;
        for (int64_t k = 0; k < n_classes; k++) {
            double target = (k == (int64_t)label ? 1 - smoothing : 0) + smoothing / (double)n_classes;
            call->out[0][n * n_classes + k] =
                image_scale * (call->in[PROBABILITIES][n * n_classes + k] - target);
        }
    }
}

/* ---- shapes, cost, gradient ---------------------------------------------------------------------- */

static cvy_status forward_infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_rank(call, LOGITS, 2));
    const struct cvy_desc *logits = &call->in[LOGITS];
    struct cvy_shape images = CVY_SHAPE(logits->shape.dim[0]);
    CVY_TRY(cvy_infer_typed(call, LABELS, CVY_I64, &images));
    CVY_TRY(cvy_infer_float(call, DIVISOR, &one));
    call->out[CVY_CROSS_ENTROPY_LOSS] = cvy_desc_make(CVY_F32, one);
    call->out[CVY_CROSS_ENTROPY_LOSSES] = cvy_desc_make(CVY_F32, images);
    call->out[CVY_CROSS_ENTROPY_PROBABILITIES] = *logits;
    return CVY_OK;
}

static cvy_status backward_infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_float(call, DLOSS, &one));
    CVY_TRY(cvy_infer_rank(call, PROBABILITIES, 2));
    CVY_TRY(
        cvy_infer_typed(call, BACKWARD_LABELS, CVY_I64, &CVY_SHAPE(call->in[PROBABILITIES].shape.dim[0])));
    CVY_TRY(cvy_infer_float(call, BACKWARD_DIVISOR, &one));
    call->out[0] = call->in[PROBABILITIES];
    return CVY_OK;
}

static void forward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, 5 * (double)cvy_shape_count(&call->in[LOGITS].shape), out);
}

static void backward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, 2 * (double)cvy_shape_count(&call->out[0].shape), out);
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    (void)want; /* of the logits alone */
    CVY_TRY(cvy_grad_check(g, node, gout));
    cvy_value in[] = {gout[0], node->out[CVY_CROSS_ENTROPY_PROBABILITIES], node->in[LABELS],
                      node->in[DIVISOR]};
    return cvy_graph_add_grad(g, node, "cross_entropy_backward", node->attrs, in, CVY_N(in), &gin[LOGITS]);
}

/* ---- cases and descriptors ----------------------------------------------------------------------- */

/* Labels below 10, which all cases have; a divisor of at least 1. */
static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    if (desc->dtype == CVY_I64)
        cvy_fill_below(i, desc, seed, 10, values);
    else if (cvy_shape_equal(&desc->shape, &one))
        cvy_fill_uniform(i, desc, seed, 1, 100, values);
    else
        cvy_fill_normal(i, desc, seed, values);
}

static void fill_backward(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    if (i == PROBABILITIES)
        cvy_fill_uniform(i, desc, seed, 0, 2 / (double)desc->shape.dim[1], values);
    else
        fill(i, desc, seed, values);
}

static const struct cvy_case forward_cases[] = {
    {"", "f32[1,10] i64[1] f32[1]", 0, fill},
    {"", "f32[5,17] i64[5] f32[1]", 0, fill},
    {"label_smoothing=0.1", "f32[3,1000] i64[3] f32[1]", 0, fill},
    {"label_smoothing=1", "f32[3,10] i64[3] f32[1]", 0, fill},
};

static const struct cvy_case backward_cases[] = {
    {"", "f32[1] f32[1,10] i64[1] f32[1]", 0, fill_backward},
    {"", "f32[1] f32[5,17] i64[5] f32[1]", 0, fill_backward},
    {"label_smoothing=0.1", "f32[1] f32[3,1000] i64[3] f32[1]", 0, fill_backward},
};

const struct cvy_op cvy_op_cross_entropy = {
    .name = "cross_entropy",
    .help = "losses = -log softmax(logits)[label], smoothed; loss = sum of losses / divisor",
    .attrs_size = sizeof(entropy_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 3,
    .n_in_min = 3,
    .n_out = 3,
    .in_names = (const char *const[]){"logits", "labels", "divisor"},
    .out_names = (const char *const[]){"loss", "losses", "probabilities"},
    .infer = forward_infer,
    .grad = grad,
    .reference = forward_reference,
    .cost = forward_cost,
    .cases = forward_cases,
    .n_cases = CVY_N(forward_cases),
};

const struct cvy_op cvy_op_cross_entropy_backward = {
    .name = "cross_entropy_backward",
    .help = "dlogits = dloss / divisor (probabilities - smoothed target)",
    .attrs_size = sizeof(entropy_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 4,
    .n_in_min = 4,
    .n_out = 1,
    .in_names = (const char *const[]){"dloss", "probabilities", "labels", "divisor"},
    .out_names = (const char *const[]){"dlogits"},
    .aliases = (const struct cvy_alias[]){{0, PROBABILITIES}},
    .n_aliases = 1,
    .infer = backward_infer,
    .reference = backward_reference,
    .cost = backward_cost,
    .cases = backward_cases,
    .n_cases = CVY_N(backward_cases),
};
