/* lamb: Adam whose step is as long as the parameter (layer), over a bucket of parameters: You et al. 2019, "Large batch
   optimization for deep learning: training BERT in 76 minutes". The details are those of timm (timm/optim/lamb.py):
   both means are corrected for their start, and a parameter without weight decay is not adapted, as biases and norms
   usually are not. timm also clips the norm of all gradients to 1: that is --clip-grad-norm 1. The order of operands is
   in optimizer.h. */
#include "ops/cases.h"
#include "ops/infer.h"
#include "ops/optimizer.h"

#include <math.h>

typedef struct cvy_adam_attrs adam_attrs;

static const struct cvy_attr attr_table[] = {
    {"beta1", CVY_ATTR_FLOAT, offsetof(adam_attrs, beta1), 0.9, 0, 1, "decay of the mean of the gradient"},
    {"beta2", CVY_ATTR_FLOAT, offsetof(adam_attrs, beta2), 0.999, 0, 1, "decay of the mean of its square"},
    {"eps", CVY_ATTR_FLOAT, offsetof(adam_attrs, eps), 1e-6, 0, 1, "added to the root of the latter"},
    {"weight_decay", CVY_ATTR_FLOAT, offsetof(adam_attrs, weight_decay), 0.01, 0, 1e6,
     "times the parameter joins the step; 0: its length is not adapted"},
};

enum { N_LEAD = 1, N_IN = 4, N_OUT = 3 };

double cvy_lamb_ratio(const struct cvy_adam_attrs *a, double param_norm, double step_norm) {
    return a->weight_decay == 0 || !(param_norm > 0) || !(step_norm > 0) ? 1 : param_norm / step_norm;
}

/* One parameter: m = beta1 m + (1 - beta1) grad, v = beta2 v + (1 - beta2) grad^2, both corrected for their start by
   1 - beta^update; step = m / (sqrt(v) + eps) + weight_decay param; param -= rate |param| / |step| step. */
static void update(const void *attrs, const double hyper[2], int64_t n, const double *const *in,
                   double *const *out) {
    const adam_attrs *a = attrs;
    double of_mean = 1 - pow(a->beta1, hyper[1]), root = sqrt(1 - pow(a->beta2, hyper[1]));
    double param = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        double m = a->beta1 * in[2][i] + (1 - a->beta1) * in[1][i];
        double v = a->beta2 * in[3][i] + (1 - a->beta2) * in[1][i] * in[1][i];
        double step = m / of_mean / (sqrt(v) / root + a->eps) + a->weight_decay * in[0][i];
        param += in[0][i] * in[0][i];
        square += step * step;
        out[1][i] = m;
        out[2][i] = v;
        out[0][i] = step; /* for now */
    }
    double rate = hyper[0] * cvy_lamb_ratio(a, sqrt(param), sqrt(square));
    for (int64_t i = 0; i < n; i++)
        out[0][i] = in[0][i] - rate * out[0][i];
}

static void reference(const struct cvy_reference *call) {
    cvy_optimizer_reference(call, N_IN, N_OUT, update);
}

static void cost(const struct cvy_infer *call, struct cvy_cost *out) { cvy_optimizer_cost(call, 26, out); }

/* Means of squares are positive. */
static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    cvy_optimizer_fill(i, desc, seed, N_IN, 1 << 3, values);
}

static const struct cvy_case cases[] = {
    {"", "f32[2] f32[1] f32[1] f32[1] f32[1]", 0, fill},
    {"", "f32[2] f32[17,3] f32[17,3] f32[17,3] f32[17,3] f32[5] f32[5] f32[5] f32[5]", 0, fill},
    {"beta1=0.8 beta2=0.95 eps=0.001 weight_decay=0.1",
     "f32[2] f32[64,33,3,3] f32[64,33,3,3] f32[64,33,3,3] f32[64,33,3,3]", 0, fill},
    {"weight_decay=0", "f32[2] f32[64] f32[64] f32[64] f32[64]", 0, fill},
};

const struct cvy_op cvy_op_lamb = {
    .name = "lamb",
    .help = "param -= lr |param| / |step| step, step = mean of grad / (root of the mean of grad^2 + eps) + "
            "weight_decay param",
    .attrs_size = sizeof(adam_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_lead_in = N_LEAD,
    .n_in = N_IN,
    .n_in_min = N_IN,
    .n_out = N_OUT,
    .in_names = (const char *const[]){"hyper", "param", "grad", "exp_avg", "exp_avg_sq"},
    .out_names = (const char *const[]){"param", "exp_avg", "exp_avg_sq"},
    .flags = CVY_OP_VARIADIC | CVY_OP_UPDATE | CVY_OP_OPTIMIZER,
    .aliases = (const struct cvy_alias[]){{0, 1}, {1, 3}, {2, 4}},
    .n_aliases = N_OUT,
    .infer = cvy_infer_optimizer,
    .reference = reference,
    .cost = cost,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
