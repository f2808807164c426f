/* concat: two to four tensors N,C,… side by side along the channels. Its gradients are slices. */
#include "ops/channels.h"

enum { MAX_PARTS = 4 };

static cvy_status infer(struct cvy_infer *call) {
    struct cvy_shape shape = call->in[0].shape;
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    if (shape.n < 2)
        return cvy_infer_fail(call, "a must be N,C,…");
    for (int i = 1; i < call->n_in; i++) {
        if (!cvy_infer_has(call, i))
            continue;
        struct cvy_shape expected = shape;
        if (call->in[i].shape.n > 1)
            expected.dim[1] = call->in[i].shape.dim[1];
        CVY_TRY(cvy_infer_typed(call, i, call->in[0].dtype, &expected));
        shape.dim[1] += expected.dim[1];
    }
    call->out[0] = cvy_desc_make(call->in[0].dtype, shape);
    return CVY_OK;
}

static void reference(const struct cvy_reference *call) {
    int64_t first = 0;
    for (int i = 0; i < call->n_in; i++) {
        if (!call->in[i])
            continue;
        const struct cvy_shape *from = &call->in_desc[i].shape;
        cvy_channels_copy(call->out[0], &call->out_desc[0].shape, first, call->in[i], from, 0, from->dim[1]);
        first += from->dim[1];
    }
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    struct cvy_channel_slice_attrs attrs = {0};
    for (int i = 0; i < node->n_in; i++) {
        if (node->in[i] == CVY_NONE)
            continue;
        attrs.count = cvy_graph_value(g, node->in[i])->desc.shape.dim[1];
        if (want >> i & 1)
            CVY_TRY(cvy_graph_add_grad(g, node, "channel_slice", &attrs, gout, 1, &gin[i]));
        attrs.first += attrs.count;
    }
    return CVY_OK;
}

static const struct cvy_case cases[] = {
    {"", "f32[2,1] f32[2,3]", 0, NULL},
    {"", "f32[2,17,5,7] f32[2,3,5,7]", 0, NULL},
    {"", "f32[2,64,4,4] f32[2,32,4,4]", 0, NULL},
    {"", "f32[2,16,5,7] f32[2,32,5,7] f32[2,8,5,7] f32[2,24,5,7]", 0, NULL},
    {"", "f32[3,2,5] f32[3,1,5] f32[3,4,5]", 0, NULL},
};

const struct cvy_op cvy_op_concat = {
    .name = "concat",
    .help = "y = the channels of a, b, c and d one behind the other",
    .n_in = MAX_PARTS,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"a", "b", "c", "d"},
    .out_names = (const char *const[]){"y"},
    .flags = CVY_OP_FOLLOWS,
    .narrow_in = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 3,
    .infer = infer,
    .grad = grad,
    .reference = reference,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
