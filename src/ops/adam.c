/* adam: torch.optim.Adam over a bucket of parameters. The order of operands is in optimizer.h. */
#include "ops/cases.h"
#include "ops/infer.h"
#include "ops/optimizer.h"

#include <math.h>

typedef struct cvy_adam_attrs adam_attrs;

static const struct cvy_attr attr_table[] = {
    {"beta1", CVY_ATTR_FLOAT, offsetof(adam_attrs, beta1), 0.9, 0, 1, "decay of the mean of the gradient"},
    {"beta2", CVY_ATTR_FLOAT, offsetof(adam_attrs, beta2), 0.999, 0, 1, "decay of the mean of its square"},
    {"eps", CVY_ATTR_FLOAT, offsetof(adam_attrs, eps), 1e-8, 0, 1, "added to the root of the latter"},
    {"weight_decay", CVY_ATTR_FLOAT, offsetof(adam_attrs, weight_decay), 0, 0, 1e6,
     "times the parameter joins the gradient"},
};

enum { N_LEAD = 1, N_IN = 4, N_OUT = 3 };

/* One parameter: g = grad + weight_decay param; m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, both
   corrected for their start at zero by 1 - beta^update. */
static void update(const void *attrs, const double hyper[2], int64_t n, const double *const *in,
                   double *const *out) {
    const adam_attrs *a = attrs;
    double rate = hyper[0] / (1 - pow(a->beta1, hyper[1])), root = sqrt(1 - pow(a->beta2, hyper[1]));
    for (int64_t i = 0; i < n; i++) {
        double grad = in[1][i] + a->weight_decay * in[0][i];
        double m = a->beta1 * in[2][i] + (1 - a->beta1) * grad;
        double v = a->beta2 * in[3][i] + (1 - a->beta2) * grad * grad;
        out[0][i] = in[0][i] - rate * m / (sqrt(v) / root + a->eps);
        out[1][i] = m;
        out[2][i] = v;
    }
}

static void reference(const struct cvy_reference *call) {
    cvy_optimizer_reference(call, N_IN, N_OUT, update);
}

static void cost(const struct cvy_infer *call, struct cvy_cost *out) { cvy_optimizer_cost(call, 14, out); }

/* Means of squares are positive. */
static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    cvy_optimizer_fill(i, desc, seed, N_IN, 1 << 3, values);
}

static const struct cvy_case cases[] = {
    {"", "f32[2] f32[1] f32[1] f32[1] f32[1]", 0, fill},
    {"weight_decay=0.1", "f32[2] f32[17,3] f32[17,3] f32[17,3] f32[17,3] f32[5] f32[5] f32[5] f32[5]", 0,
     fill},
    {"beta1=0.8 beta2=0.95 eps=0.001 weight_decay=0.1", "f32[2] f32[64] f32[64] f32[64] f32[64]", 0, fill},
};

const struct cvy_op cvy_op_adam = {
    .name = "adam",
    .help = "adamw, with weight_decay param added to grad: it goes through the means",
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
