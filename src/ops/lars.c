/* lars: SGD whose rate is adapted to each parameter (layer), over a bucket of parameters: You, Gitman, Ginsburg 2017,
   "Large batch training of convolutional networks". The details are those of timm (timm/optim/lars.py): a parameter
   without weight decay is not adapted, as biases and norms usually are not, and momentum is of the adapted gradient.
   The order of operands is in optimizer.h. */
#include "ops/cases.h"
#include "ops/infer.h"
#include "ops/optimizer.h"

#include <math.h>

typedef struct cvy_lars_attrs lars_attrs;

static const struct cvy_attr attr_table[] = {
    {"momentum", CVY_ATTR_FLOAT, offsetof(lars_attrs, momentum), 0.9, 0, 1e6,
     "share of the last step that is kept"},
    {"dampening", CVY_ATTR_FLOAT, offsetof(lars_attrs, dampening), 0, 0, 1,
     "share of the gradient that does not enter the momentum"},
    {"weight_decay", CVY_ATTR_FLOAT, offsetof(lars_attrs, weight_decay), 0, 0, 1e6,
     "times the parameter joins the gradient; 0: the rate is not adapted"},
    {"nesterov", CVY_ATTR_BOOL, offsetof(lars_attrs, nesterov), 0, 0, 1, "Nesterov momentum"},
    {"trust_coefficient", CVY_ATTR_FLOAT, offsetof(lars_attrs, trust_coefficient), 0.001, 0, 1e6,
     "what the length of a step is of that of the parameter"},
    {"eps", CVY_ATTR_FLOAT, offsetof(lars_attrs, eps), 1e-8, 0, 1, "added to the norm of the gradient"},
};

enum { N_LEAD = 1, N_IN = 3, N_OUT = 2 };

double cvy_lars_ratio(const struct cvy_lars_attrs *a, double param_norm, double grad_norm) {
    if (a->weight_decay == 0 || !(param_norm > 0) || !(grad_norm > 0))
        return 1;
    return a->trust_coefficient * param_norm / (grad_norm + a->weight_decay * param_norm + a->eps);
}

/* One parameter: d = ratio (grad + weight_decay param), ratio = trust |param| / (|grad| + weight_decay |param| + eps);
   then as sgd: the buffer is d at first, then momentum buffer + (1 - dampening) d; param -= rate buffer. */
static void update(const void *attrs, const double hyper[2], int64_t n, const double *const *in,
                   double *const *out) {
    const lars_attrs *a = attrs;
    double param = 0, grad = 0;
    for (int64_t i = 0; i < n; i++) {
        param += in[0][i] * in[0][i];
        grad += in[1][i] * in[1][i];
    }
    double ratio = cvy_lars_ratio(a, sqrt(param), sqrt(grad));
    for (int64_t i = 0; i < n; i++) {
        double d = ratio * (in[1][i] + a->weight_decay * in[0][i]), step = d;
        out[1][i] = in[2][i];
        if (a->momentum != 0) {
            out[1][i] = hyper[1] <= 1 ? d : a->momentum * in[2][i] + (1 - a->dampening) * d;
            step = a->nesterov ? d + a->momentum * out[1][i] : out[1][i];
        }
        out[0][i] = in[0][i] - hyper[0] * step;
    }
}

static void reference(const struct cvy_reference *call) {
    cvy_optimizer_reference(call, N_IN, N_OUT, update);
}

static void cost(const struct cvy_infer *call, struct cvy_cost *out) { cvy_optimizer_cost(call, 11, out); }

static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    cvy_optimizer_fill(i, desc, seed, N_IN, 0, values);
}

/* The first update, and a gradient that is zero. */
static void fill_first(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    fill(i, desc, seed, values);
    if (i == 0)
        values[1] = 1;
    for (int64_t k = 0; i == 2 && k < cvy_shape_count(&desc->shape); k++)
        values[k] = 0;
}

static const struct cvy_case cases[] = {
    {"", "f32[2] f32[1] f32[1] f32[1]", 0, fill},
    {"weight_decay=0.1 trust_coefficient=0.5", "f32[2] f32[17,3] f32[17,3] f32[17,3] f32[5] f32[5] f32[5]", 0,
     fill},
    {"momentum=0.5 dampening=0.2 weight_decay=0.01 trust_coefficient=2 eps=0.1",
     "f32[2] f32[64,33,3,3] f32[64,33,3,3] f32[64,33,3,3]", 0, fill},
    {"weight_decay=0.01 trust_coefficient=0.02 nesterov=true", "f32[2] f32[64] f32[64] f32[64]", 0, fill},
    {"weight_decay=0.01", "f32[2] f32[30] f32[30] f32[30]", 0, fill_first},
    {"momentum=0 weight_decay=0.01 trust_coefficient=1", "f32[2] f32[30] f32[30] f32[30]", 0, fill},
};

const struct cvy_op cvy_op_lars = {
    .name = "lars",
    .help = "sgd of trust_coefficient |param| / (|grad| + weight_decay |param| + eps) (grad + weight_decay "
            "param)",
    .attrs_size = sizeof(lars_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_lead_in = N_LEAD,
    .n_in = N_IN,
    .n_in_min = N_IN,
    .n_out = N_OUT,
    .in_names = (const char *const[]){"hyper", "param", "grad", "momentum_buffer"},
    .out_names = (const char *const[]){"param", "momentum_buffer"},
    .flags = CVY_OP_VARIADIC | CVY_OP_UPDATE | CVY_OP_OPTIMIZER,
    .aliases = (const struct cvy_alias[]){{0, 1}, {1, 3}},
    .n_aliases = N_OUT,
    .infer = cvy_infer_optimizer,
    .reference = reference,
    .cost = cost,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
