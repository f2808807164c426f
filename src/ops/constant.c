/* constant: one number, known when the graph is built. The default, 1, is the gradient of a loss by itself. */
#include "ops/constant.h"
#include "ops/infer.h"

#include <float.h>

static const struct cvy_attr attr_table[] = {
    {"value", CVY_ATTR_FLOAT, offsetof(struct cvy_constant_attrs, value), 1, -FLT_MAX, FLT_MAX, "the number"},
};

static cvy_status infer(struct cvy_infer *call) {
    call->out[0] = cvy_desc_make(CVY_F32, CVY_SHAPE(1));
    return CVY_OK;
}

static void reference(const struct cvy_reference *call) {
    call->out[0][0] = ((const struct cvy_constant_attrs *)call->attrs)->value;
}

static const struct cvy_case cases[] = {
    {"", "", 0, NULL}, {"value=0", "", 0, NULL}, {"value=-2.5", "", 0, NULL}};

const struct cvy_op cvy_op_constant = {
    .name = "constant",
    .help = "y = value, of shape 1",
    .attrs_size = sizeof(struct cvy_constant_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_out = 1,
    .out_names = (const char *const[]){"y"},
    .infer = infer,
    .reference = reference,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
