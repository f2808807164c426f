/* add: of two tensors of one shape. Also how gradients meet where a value has several readers. */
#include "ops/infer.h"

static void reference(const struct cvy_reference *call) {
    int64_t n = cvy_shape_count(&call->in_desc[0].shape);
    for (int64_t i = 0; i < n; i++)
        call->out[0][i] = call->in[0][i] + call->in[1][i];
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    (void)g, (void)node, (void)want;
    gin[0] = gin[1] = gout[0];
    return CVY_OK;
}

static const struct cvy_case cases[] = {
    {"", "f32[1] f32[1]", 0, NULL},
    {"", "f32[3,17] f32[3,17]", 0, NULL},
    {"", "f32[2,17,5,7] f32[2,17,5,7]", 0, NULL},
    {"", "f32[2,64,4,4] f32[2,64,4,4]", 0, NULL},
};

const struct cvy_op cvy_op_add = {
    .name = "add",
    .help = "y = a + b",
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"a", "b"},
    .out_names = (const char *const[]){"y"},
    .flags = CVY_OP_FOLLOWS,
    .aliases = (const struct cvy_alias[]){{0, 0}, {0, 1}},
    .n_aliases = 2,
    .narrow_in = 1u << 0 | 1u << 1,
    .infer = cvy_infer_binary,
    .grad = grad,
    .reference = reference,
    .cost = cvy_cost_elementwise,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
