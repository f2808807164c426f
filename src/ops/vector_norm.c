/* vector_norm: the Euclidean norm of a tensor, for clipping gradients. */
#include "ops/cases.h"
#include "ops/infer.h"

#include <math.h>

static cvy_status infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    call->out[0] = cvy_desc_make(CVY_F32, CVY_SHAPE(1));
    return CVY_OK;
}

static void reference(const struct cvy_reference *call) {
    int64_t n = cvy_shape_count(&call->in_desc[0].shape);
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += call->in[0][i] * call->in[0][i];
    call->out[0][0] = sqrt(sum);
}

static void cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, 2 * (double)cvy_shape_count(&call->in[0].shape), out);
}

static const struct cvy_case cases[] = {
    {"", "f32[1]", 0, NULL},
    {"", "f32[3,17]", 0, NULL},
    {"", "f32[17,2,5,7]", 0, NULL},
    {"", "f32[33,40,3,3]", 0, NULL},
};

const struct cvy_op cvy_op_vector_norm = {
    .name = "vector_norm",
    .help = "y = root of the sum of x^2",
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"x"},
    .out_names = (const char *const[]){"y"},
    .infer = infer,
    .reference = reference,
    .cost = cost,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
