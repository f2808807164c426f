/* cast: the same numbers in another floating-point type, rounded to the nearest, ties to even. Its gradient is a cast
   back; a gradient that comes in x's type already, as those of weights do, passes as it is. */
#include "ops/cast.h"
#include "ops/infer.h"

#include <string.h>

typedef struct cvy_cast_attrs cast_attrs;

static const struct cvy_attr attr_table[] = {
    {"bf16", CVY_ATTR_BOOL, offsetof(cast_attrs, bf16), 0, 0, 1, "to bfloat16"},
    {"f16", CVY_ATTR_BOOL, offsetof(cast_attrs, f16), 0, 0, 1, "to float16; neither: to float32"},
};

static cvy_status infer(struct cvy_infer *call) {
    const cast_attrs *a = call->attrs;
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    if (a->bf16 && a->f16)
        return cvy_infer_fail(call, "bf16 and f16: take one of them");
    call->out[0] = call->in[0];
    call->out[0].dtype = a->bf16 ? CVY_BF16 : a->f16 ? CVY_F16 : CVY_F32;
    return CVY_OK;
}

static void reference(const struct cvy_reference *call) {
    memcpy(call->out[0], call->in[0], (size_t)cvy_shape_count(&call->in_desc[0].shape) * sizeof(double));
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    (void)want; /* one input: it is wanted */
    cvy_dtype type = cvy_graph_value(g, node->in[0])->desc.dtype;
    const cast_attrs back = cvy_cast_to(type);
    if (cvy_graph_value(g, gout[0])->desc.dtype != type)
        return cvy_graph_add_grad(g, node, "cast", &back, gout, 1, &gin[0]);
    gin[0] = gout[0];
    return CVY_OK;
}

/* bfloat16 keeps 8 significant bits, float16 11: rounding errs by 2^-8 and 2^-11 of a number at most. */
static const struct cvy_case cases[] = {
    {"", "f32[1]", 0, NULL},
    {"bf16=true", "f32[3,17]", 0x1p-8, NULL},
    {"bf16=true", "f32[2,17,5,7]", 0x1p-8, NULL},
    {"f16=true", "f32[3,17,5,7]", 0x1p-11, NULL},
    {"", "bf16[2,17,5,7]", 0, NULL},
    {"", "f16[3,17]", 0, NULL},
};

const struct cvy_op cvy_op_cast = {
    .name = "cast",
    .help = "y = x, rounded to bfloat16, float16 or float32",
    .attrs_size = sizeof(cast_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"x"},
    .out_names = (const char *const[]){"y"},
    .flags = CVY_OP_PACKS,
    .infer = infer,
    .grad = grad,
    .reference = reference,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
