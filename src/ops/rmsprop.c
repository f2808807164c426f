/* rmsprop: torch.optim.RMSprop, not centered, over a bucket of parameters. The order of operands is in optimizer.h. */
#include "ops/cases.h"
#include "ops/infer.h"
#include "ops/optimizer.h"

#include <math.h>

typedef struct cvy_rmsprop_attrs rmsprop_attrs;

static const struct cvy_attr attr_table[] = {
    {"momentum", CVY_ATTR_FLOAT, offsetof(rmsprop_attrs, momentum), 0, 0, 1,
     "share of the last step that is kept"},
    {"alpha", CVY_ATTR_FLOAT, offsetof(rmsprop_attrs, alpha), 0.9, 0, 1,
     "decay of the mean of the gradient's square"},
    {"eps", CVY_ATTR_FLOAT, offsetof(rmsprop_attrs, eps), 0.0316, 0, 1, "added to its root"},
    {"weight_decay", CVY_ATTR_FLOAT, offsetof(rmsprop_attrs, weight_decay), 0, 0, 1e6,
     "times the parameter joins the gradient"},
};

enum { N_LEAD = 1, N_IN = 4, N_OUT = 3 };

/* One parameter: g = grad + weight_decay param; v = alpha v + (1 - alpha) g^2; buffer = momentum buffer +
   g / (sqrt(v) + eps); param -= rate buffer. */
static void update(const void *attrs, const double hyper[2], int64_t n, const double *const *in,
                   double *const *out) {
    const rmsprop_attrs *a = attrs;
    for (int64_t i = 0; i < n; i++) {
        double grad = in[1][i] + a->weight_decay * in[0][i];
        double v = a->alpha * in[2][i] + (1 - a->alpha) * grad * grad;
        double buffer = a->momentum * in[3][i] + grad / (sqrt(v) + a->eps);
        out[0][i] = in[0][i] - hyper[0] * buffer;
        out[1][i] = v;
        out[2][i] = buffer;
    }
}

static void reference(const struct cvy_reference *call) {
    cvy_optimizer_reference(call, N_IN, N_OUT, update);
}

static void cost(const struct cvy_infer *call, struct cvy_cost *out) { cvy_optimizer_cost(call, 12, out); }

/* Means of squares are positive. */
static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    cvy_optimizer_fill(i, desc, seed, N_IN, 1 << 2, values);
}

static const struct cvy_case cases[] = {
    {"", "f32[2] f32[1] f32[1] f32[1] f32[1]", 0, fill},
    {"weight_decay=0.1", "f32[2] f32[17,3] f32[17,3] f32[17,3] f32[17,3] f32[5] f32[5] f32[5] f32[5]", 0,
     fill},
    {"momentum=0.9 alpha=0.99 eps=1e-8", "f32[2] f32[64] f32[64] f32[64] f32[64]", 0, fill},
};

const struct cvy_op cvy_op_rmsprop = {
    .name = "rmsprop",
    .help = "param -= lr (momentum buffer of (grad + weight_decay param) / (root of the mean of its square + "
            "eps))",
    .attrs_size = sizeof(rmsprop_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_lead_in = N_LEAD,
    .n_in = N_IN,
    .n_in_min = N_IN,
    .n_out = N_OUT,
    .in_names = (const char *const[]){"hyper", "param", "grad", "square_avg", "momentum_buffer"},
    .out_names = (const char *const[]){"param", "square_avg", "momentum_buffer"},
    .flags = CVY_OP_VARIADIC | CVY_OP_UPDATE | CVY_OP_OPTIMIZER,
    .aliases = (const struct cvy_alias[]){{0, 1}, {1, 3}, {2, 4}},
    .n_aliases = N_OUT,
    .infer = cvy_infer_optimizer,
    .reference = reference,
    .cost = cost,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
