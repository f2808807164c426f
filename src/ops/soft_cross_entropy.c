/* soft_cross_entropy of logits and class probabilities (mixed labels), and its gradient. With K classes, targets t,
   smoothing s and p = softmax(logits), the smoothed target is q[n,k] = (1 - s) t[n,k] + s / K, and as in PyTorch
     losses[n] = - sum over k of q[n,k] log p[n,k]
     loss      = sum of losses / divisor, where the divisor is the global batch
     dlogits   = dloss / divisor (p sum of q - q), the sum over the image's classes: 1 where t are probabilities
   Targets are constants to the gradient. */
#include "ops/cases.h"
#include "ops/cross_entropy.h"
#include "ops/infer.h"

#include <math.h>

typedef struct cvy_cross_entropy_attrs entropy_attrs;

static const struct cvy_attr attr_table[] = {
    {"label_smoothing", CVY_ATTR_FLOAT, offsetof(entropy_attrs, label_smoothing), 0, 0, 1,
     "share of the target that is spread over all classes"},
};

enum { LOGITS, TARGETS, DIVISOR };                                 /* inputs */
enum { DLOSS, PROBABILITIES, BACKWARD_TARGETS, BACKWARD_DIVISOR }; /* inputs of the gradient */

static const struct cvy_shape one = {.n = 1, .dim = {1}};

/* ---- reference: logits, targets [N,K] ------------------------------------------------------------ */

static double smoothed(double target, double smoothing, int64_t n_classes) {
    return (1 - smoothing) * target + smoothing / (double)n_classes;
}

static void forward_reference(const struct cvy_reference *call) {
    int64_t images = call->in_desc[LOGITS].shape.dim[0], n_classes = call->in_desc[LOGITS].shape.dim[1];
    double smoothing = ((const entropy_attrs *)call->attrs)->label_smoothing, total = 0;
    for (int64_t n = 0; n < images; n++) {
        const double *x = call->in[LOGITS] + n * n_classes, *t = call->in[TARGETS] + n * n_classes;
        double lse = cvy_log_sum_exp(x, n_classes), loss = 0;
        for (int64_t k = 0; k < n_classes; k++) {
            double log_p = x[k] - lse;
            call->out[CVY_CROSS_ENTROPY_PROBABILITIES][n * n_classes + k] = exp(log_p);
            loss -= smoothed(t[k], smoothing, n_classes) * log_p;
        }
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
        const double *p = call->in[PROBABILITIES] + n * n_classes,
                     *t = call->in[BACKWARD_TARGETS] + n * n_classes;
        double sum = 0;
        for (int64_t k = 0; k < n_classes; k++)
            sum += smoothed(t[k], smoothing, n_classes);
        for (int64_t k = 0; k < n_classes; k++)
            call->out[0][n * n_classes + k] = scale * (p[k] * sum - smoothed(t[k], smoothing, n_classes));
    }
}

/* ---- shapes, cost, gradient ---------------------------------------------------------------------- */

static cvy_status forward_infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_rank(call, LOGITS, 2));
    const struct cvy_desc *logits = &call->in[LOGITS];
    CVY_TRY(cvy_infer_float(call, TARGETS, &logits->shape));
    CVY_TRY(cvy_infer_float(call, DIVISOR, &one));
    call->out[CVY_CROSS_ENTROPY_LOSS] = cvy_desc_make(CVY_F32, one);
    call->out[CVY_CROSS_ENTROPY_LOSSES] = cvy_desc_make(CVY_F32, CVY_SHAPE(logits->shape.dim[0]));
    call->out[CVY_CROSS_ENTROPY_PROBABILITIES] = *logits;
    return CVY_OK;
}

static cvy_status backward_infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_float(call, DLOSS, &one));
    CVY_TRY(cvy_infer_rank(call, PROBABILITIES, 2));
    CVY_TRY(cvy_infer_float(call, BACKWARD_TARGETS, &call->in[PROBABILITIES].shape));
    CVY_TRY(cvy_infer_float(call, BACKWARD_DIVISOR, &one));
    call->out[0] = call->in[PROBABILITIES];
    return CVY_OK;
}

static void forward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, 7 * (double)cvy_shape_count(&call->in[LOGITS].shape), out);
}

static void backward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, 4 * (double)cvy_shape_count(&call->out[0].shape), out);
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    (void)want; /* of the logits alone */
    CVY_TRY(cvy_grad_check(g, node, gout));
    cvy_value in[] = {gout[0], node->out[CVY_CROSS_ENTROPY_PROBABILITIES], node->in[TARGETS],
                      node->in[DIVISOR]};
    return cvy_graph_add_grad(g, node, "soft_cross_entropy_backward", node->attrs, in, CVY_N(in),
                              &gin[LOGITS]);
}

/* ---- cases and descriptors ----------------------------------------------------------------------- */

/* Targets of which some are 0, and do not quite add up to 1; a divisor of at least 1. */
static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    if (cvy_shape_equal(&desc->shape, &one)) {
        cvy_fill_uniform(i, desc, seed, 1, 100, values);
    } else if (i == LOGITS) {
        cvy_fill_normal(i, desc, seed, values);
    } else {
        cvy_fill_uniform(i, desc, seed, -1, 3, values);
        for (int64_t k = 0; k < cvy_shape_count(&desc->shape); k++)
            values[k] = values[k] < 0 ? 0 : values[k] / (double)desc->shape.dim[1];
    }
}

static void fill_backward(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    if (i == PROBABILITIES)
        cvy_fill_uniform(i, desc, seed, 0, 2 / (double)desc->shape.dim[1], values);
    else
        fill(i, desc, seed, values);
}

static const struct cvy_case forward_cases[] = {
    {"", "f32[1,10] f32[1,10] f32[1]", 0, fill},
    {"", "f32[5,17] f32[5,17] f32[1]", 0, fill},
    {"label_smoothing=0.1", "f32[3,1000] f32[3,1000] f32[1]", 0, fill},
    {"label_smoothing=1", "f32[3,10] f32[3,10] f32[1]", 0, fill},
};

static const struct cvy_case backward_cases[] = {
    {"", "f32[1] f32[1,10] f32[1,10] f32[1]", 0, fill_backward},
    {"", "f32[1] f32[5,17] f32[5,17] f32[1]", 0, fill_backward},
    {"label_smoothing=0.1", "f32[1] f32[3,1000] f32[3,1000] f32[1]", 0, fill_backward},
};

const struct cvy_op cvy_op_soft_cross_entropy = {
    .name = "soft_cross_entropy",
    .help = "losses = - sum of targets log softmax(logits), smoothed; loss = sum of losses / divisor",
    .attrs_size = sizeof(entropy_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 3,
    .n_in_min = 3,
    .n_out = 3,
    .in_names = (const char *const[]){"logits", "targets", "divisor"},
    .out_names = (const char *const[]){"loss", "losses", "probabilities"},
    .infer = forward_infer,
    .grad = grad,
    .reference = forward_reference,
    .cost = forward_cost,
    .cases = forward_cases,
    .n_cases = CVY_N(forward_cases),
};

const struct cvy_op cvy_op_soft_cross_entropy_backward = {
    .name = "soft_cross_entropy_backward",
    .help = "dlogits = dloss / divisor (probabilities - smoothed targets)",
    .attrs_size = sizeof(entropy_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 4,
    .n_in_min = 4,
    .n_out = 1,
    .in_names = (const char *const[]){"dloss", "probabilities", "targets", "divisor"},
    .out_names = (const char *const[]){"dlogits"},
    .aliases = (const struct cvy_alias[]){{0, PROBABILITIES}},
    .n_aliases = 1,
    .infer = backward_infer,
    .reference = backward_reference,
    .cost = backward_cost,
    .cases = backward_cases,
    .n_cases = CVY_N(backward_cases),
};
