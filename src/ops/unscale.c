/* unscale: a gradient of the scaled loss becomes that of the loss (those scales are powers of two, so nothing is
   rounded); and gradients whose norm is clipped are divided by what it is too large by. */
#include "ops/cases.h"
#include "ops/infer.h"

static cvy_status infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    CVY_TRY(cvy_infer_float(call, 1, &CVY_SHAPE(1)));
    call->out[0] = call->in[0];
    return CVY_OK;
}

static void reference(const struct cvy_reference *call) {
    int64_t n = cvy_shape_count(&call->in_desc[0].shape);
    for (int64_t i = 0; i < n; i++)
        call->out[0][i] = call->in[0][i] / call->in[1][0];
}

static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    cvy_fill_normal(i, desc, seed, values);
    if (i == 1)
        values[0] = 1024;
}

static void fill_any(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    cvy_fill_normal(i, desc, seed, values);
    if (i == 1)
        values[0] = 1.375;
}

static const struct cvy_case cases[] = {
    {"", "f32[1] f32[1]", 0, fill},
    {"", "f32[3,17] f32[1]", 0, fill},
    {"", "f32[17,2,5,7] f32[1]", 0, fill},
    {"", "f32[70,30,3,3] f32[1]", 0, fill_any},
};

const struct cvy_op cvy_op_unscale = {
    .name = "unscale",
    .help = "y = x / scale",
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"x", "scale"},
    .out_names = (const char *const[]){"y"},
    .aliases = (const struct cvy_alias[]){{0, 0}},
    .n_aliases = 1,
    .infer = infer,
    .reference = reference,
    .cost = cvy_cost_elementwise,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
