/* sgd: torch.optim.SGD over a bucket of parameters. The order of operands is in optimizer.h. */
#include "ops/cases.h"
#include "ops/infer.h"
#include "ops/optimizer.h"

typedef struct cvy_sgd_attrs sgd_attrs;

static const struct cvy_attr attr_table[] = {
    {"momentum", CVY_ATTR_FLOAT, offsetof(sgd_attrs, momentum), 0, 0, 1,
     "share of the last step that is kept"},
    {"dampening", CVY_ATTR_FLOAT, offsetof(sgd_attrs, dampening), 0, 0, 1,
     "share of the gradient that momentum drops"},
    {"weight_decay", CVY_ATTR_FLOAT, offsetof(sgd_attrs, weight_decay), 0, 0, 1e6,
     "times the parameter joins the gradient"},
    {"nesterov", CVY_ATTR_BOOL, offsetof(sgd_attrs, nesterov), 0, 0, 1, "look one momentum step ahead"},
};

enum { N_LEAD = 1, N_IN = 3, N_OUT = 2 };

/* One parameter: d = grad + weight_decay param; buffer = momentum buffer + (1 - dampening) d, but d in the
   first update; the step is d without momentum, d + momentum buffer with nesterov, else the buffer. */
static void update(const void *attrs, const double hyper[2], int64_t n, const double *const *in,
                   double *const *out) {
    const sgd_attrs *a = attrs;
    for (int64_t i = 0; i < n; i++) {
        double d = in[0][i] * a->weight_decay + in[1][i], buffer = in[2][i], step = d;
        if (a->momentum != 0) {
            buffer = hyper[1] <= 1 ? d : a->momentum * buffer + (1 - a->dampening) * d;
            step = a->nesterov ? d + a->momentum * buffer : buffer;
        }
        out[0][i] = in[0][i] - hyper[0] * step;
        out[1][i] = buffer;
    }
}

static void reference(const struct cvy_reference *call) {
    cvy_optimizer_reference(call, N_IN, N_OUT, update);
}

static void cost(const struct cvy_infer *call, struct cvy_cost *out) { cvy_optimizer_cost(call, 6, out); }

/* hyper = {rate, number of the update}: somewhere in training, or the first. */
static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    cvy_fill_normal(i, desc, seed, values);
    if (i == 0) {
        values[0] = 0.1;
        values[1] = 7;
    }
}

static void fill_first(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    fill(i, desc, seed, values);
    if (i == 0)
        values[1] = 1;
}

static const struct cvy_case cases[] = {
    {"", "f32[2] f32[1] f32[1] f32[1]", 0, fill},
    {"momentum=0.9 weight_decay=0.0005", "f32[2] f32[17,3] f32[17,3] f32[17,3] f32[5] f32[5] f32[5]", 0,
     fill},
    {"momentum=0.9 weight_decay=0.0005", "f32[2] f32[17,3] f32[17,3] f32[17,3]", 0, fill_first},
    {"momentum=0.9 dampening=0.1", "f32[2] f32[64] f32[64] f32[64]", 0, fill},
    {"momentum=0.9 nesterov=true weight_decay=0.01", "f32[2] f32[3,3] f32[3,3] f32[3,3]", 0, fill},
};

const struct cvy_op cvy_op_sgd = {
    .name = "sgd",
    .help = "param -= lr (momentum buffer of grad + weight_decay param)",
    .attrs_size = sizeof(sgd_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_lead_in = N_LEAD,
    .n_in = N_IN,
    .n_in_min = N_IN,
    .n_out = N_OUT,
    .in_names = (const char *const[]){"hyper", "param", "grad", "momentum"},
    .out_names = (const char *const[]){"param", "momentum"},
    .flags = CVY_OP_VARIADIC | CVY_OP_UPDATE | CVY_OP_OPTIMIZER,
    .aliases = (const struct cvy_alias[]){{0, 1}, {1, 3}},
    .n_aliases = N_OUT,
    .infer = cvy_infer_optimizer,
    .reference = reference,
    .cost = cost,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
