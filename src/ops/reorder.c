/* reorder: the same tensor in another layout. It stands where two kernels disagree, and packs weights. */
#include "ops/infer.h"

#include <string.h>

static cvy_status infer(struct cvy_infer *call) {
    call->out[0] = call->in[0];
    return CVY_OK;
}

static void reference(const struct cvy_reference *call) {
    memcpy(call->out[0], call->in[0], (size_t)cvy_shape_count(&call->in_desc[0].shape) * sizeof(double));
}

static const struct cvy_case cases[] = {
    {"", "f32[1]", 0, NULL}, {"", "f32[3,17,5,7]", 0, NULL}, {"", "f32[64,32,3,3]", 0, NULL}};

const struct cvy_op cvy_op_reorder = {
    .name = "reorder",
    .help = "y = x in another layout",
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"x"},
    .out_names = (const char *const[]){"y"},
    .narrow_in = 1u << 0,
    .infer = infer,
    .reference = reference,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
