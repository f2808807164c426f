/* channel_shuffle: channels in `groups` rows of C / groups, transposed. Its gradient shuffles back, with C / groups
   groups. */
#include "ops/channels.h"

typedef struct cvy_channel_shuffle_attrs shuffle_attrs;

static const struct cvy_attr attr_table[] = {
    {"groups", CVY_ATTR_INT, offsetof(shuffle_attrs, groups), 1, 1, CVY_MAX_SIZE, "groups; they divide C"},
};

static cvy_status infer(struct cvy_infer *call) {
    const shuffle_attrs *a = call->attrs;
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    if (call->in[0].shape.n < 2 || call->in[0].shape.dim[1] % a->groups)
        return cvy_infer_fail(call, "x must be N,C,… and groups = %lld divide C", (long long)a->groups);
    call->out[0] = call->in[0];
    return CVY_OK;
}

static void reference(const struct cvy_reference *call) {
    const struct cvy_shape *x = &call->in_desc[0].shape;
    int64_t groups = ((const shuffle_attrs *)call->attrs)->groups;
    for (int64_t c = 0; c < x->dim[1]; c++)
        cvy_channels_copy(call->out[0], x, c, call->in[0], x, cvy_channel_shuffled(x->dim[1], groups, c), 1);
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    (void)want; /* one input: it is wanted */
    const shuffle_attrs *a = node->attrs;
    const shuffle_attrs back = {cvy_graph_value(g, node->in[0])->desc.shape.dim[1] / a->groups};
    return cvy_graph_add_grad(g, node, "channel_shuffle", &back, gout, 1, &gin[0]);
}

static const struct cvy_case cases[] = {
    {"", "f32[2,3]", 0, NULL},
    {"groups=2", "f32[2,16,5,7]", 0, NULL},
    {"groups=3", "f32[2,48,4,4]", 0, NULL},
    {"groups=4", "f32[3,12]", 0, NULL},
};

const struct cvy_op cvy_op_channel_shuffle = {
    .name = "channel_shuffle",
    .help = "y = x with its channels, as a matrix with a row for each group, transposed",
    .attrs_size = sizeof(shuffle_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"x"},
    .out_names = (const char *const[]){"y"},
    .flags = CVY_OP_FOLLOWS,
    .narrow_in = 1u << 0,
    .infer = infer,
    .grad = grad,
    .reference = reference,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
