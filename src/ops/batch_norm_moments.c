/* batch_norm_moments: what a shard knows of each channel of x, as its row for the other shards (see batch_norm.h).
   M2 is the sum of squared deviations from the mean, in two passes: never E[x^2] - E[x]^2. */
#include "ops/batch_norm.h"
#include "ops/infer.h"

#include <string.h>

static void reference(const struct cvy_reference *call) {
    const struct cvy_shape *x = &call->in_desc[0].shape;
    int64_t images = x->dim[0], channels = x->dim[1], inner = cvy_shape_count(x) / (images * channels);
    int64_t m = images * inner;
    double *row = call->out[0];
    memset(row, 0, (size_t)cvy_batch_norm_row(channels) * sizeof *row);
    for (int pass = 0; pass < 2; pass++) { /* means, then deviations from them */
        for (int64_t i = 0; i < m * channels; i++) {
            int64_t c = i / inner % channels;
            double d = call->in[0][i] - (pass ? row[c] : 0);
            row[pass * channels + c] += pass ? d * d : d / (double)m;
        }
    }
    row[2 * channels] = (double)m;
    row[2 * channels + 1] = (double)images;
}

static cvy_status infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    const struct cvy_shape *x = &call->in[0].shape;
    if (x->n < 2 || cvy_shape_count(x) == 0)
        return cvy_infer_fail(call, "x must be N,C,… and not empty");
    call->out[0] = cvy_desc_make(CVY_F32, CVY_SHAPE(cvy_batch_norm_row(x->dim[1])));
    return CVY_OK;
}

static void cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, 4 * (double)cvy_shape_count(&call->in[0].shape), out);
}

static const struct cvy_case cases[] = {
    {"", "f32[2,3,4,4]", 0, NULL},  {"", "f32[3,17,5,7]", 0, NULL}, {"", "f32[1,64,3,3]", 0, NULL},
    {"", "f32[1,3,1,1]", 0, NULL},  {"", "f32[5,3]", 0, NULL},      {"", "f32[2,16,40,41]", 0, NULL},
    {"", "f32[7,33,2,3]", 0, NULL},
};

const struct cvy_op cvy_op_batch_norm_moments = {
    .name = "batch_norm_moments",
    .help = "row = mean[C], M2[C] (the sum of squared deviations), values of a channel, images, zeros",
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"x"},
    .out_names = (const char *const[]){"row"},
    .flags = CVY_OP_FOLLOWS,
    .narrow_in = 1u << 0,
    .infer = infer,
    .reference = reference,
    .cost = cost,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
