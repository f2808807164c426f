/* channel_slice: some neighbouring channels of N,C,…; its gradient is zero in the others. */
#include "ops/channels.h"

#include <string.h>

typedef struct cvy_channel_slice_attrs slice_attrs;

static const struct cvy_attr attr_table[] = {
    {"first", CVY_ATTR_INT, offsetof(slice_attrs, first), 0, 0, CVY_MAX_SIZE, "the first channel"},
    {"count", CVY_ATTR_INT, offsetof(slice_attrs, count), 1, 1, CVY_MAX_SIZE, "how many channels"},
    {"channels", CVY_ATTR_INT, offsetof(slice_attrs, channels), 0, 0, CVY_MAX_SIZE, "all channels of x"},
};
enum { N_FORWARD_ATTRS = CVY_N(attr_table) - 1 };

void cvy_channels_copy(double *to, const struct cvy_shape *to_shape, int64_t to_first, const double *from,
                       const struct cvy_shape *from_shape, int64_t from_first, int64_t count) {
    int64_t pixels = 1;
    for (int k = 2; k < to_shape->n; k++)
        pixels *= to_shape->dim[k];
    for (int64_t n = 0; n < to_shape->dim[0]; n++)
        memcpy(to + (n * to_shape->dim[1] + to_first) * pixels,
               from + (n * from_shape->dim[1] + from_first) * pixels, (size_t)(count * pixels) * sizeof *to);
}

static cvy_status infer(struct cvy_infer *call) {
    const slice_attrs *a = call->attrs;
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    const struct cvy_shape *x = &call->in[0].shape;
    if (x->n < 2 || a->first + a->count > x->dim[1])
        return cvy_infer_fail(call, "x must be N,C,… with at least first + count = %lld channels",
                              (long long)(a->first + a->count));
    call->out[0] = call->in[0];
    call->out[0].shape.dim[1] = a->count;
    return CVY_OK;
}

static cvy_status backward_infer(struct cvy_infer *call) {
    const slice_attrs *a = call->attrs;
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    if (call->in[0].shape.n < 2 || call->in[0].shape.dim[1] != a->count)
        return cvy_infer_fail(call, "dy must be N,C,… with count = %lld channels", (long long)a->count);
    if (a->first + a->count > a->channels)
        return cvy_infer_fail(call, "channels=%lld, all that x has, is less than first + count",
                              (long long)a->channels);
    call->out[0] = call->in[0];
    call->out[0].shape.dim[1] = a->channels;
    return CVY_OK;
}

static void reference(const struct cvy_reference *call) {
    const slice_attrs *a = call->attrs;
    cvy_channels_copy(call->out[0], &call->out_desc[0].shape, 0, call->in[0], &call->in_desc[0].shape,
                      a->first, a->count);
}

static void backward_reference(const struct cvy_reference *call) {
    const slice_attrs *a = call->attrs;
    memset(call->out[0], 0, (size_t)cvy_shape_count(&call->out_desc[0].shape) * sizeof(double));
    cvy_channels_copy(call->out[0], &call->out_desc[0].shape, a->first, call->in[0], &call->in_desc[0].shape,
                      0, a->count);
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    (void)want; /* one input: it is wanted */
    slice_attrs attrs = *(const slice_attrs *)node->attrs;
    attrs.channels = cvy_graph_value(g, node->in[0])->desc.shape.dim[1];
    return cvy_graph_add_grad(g, node, "channel_slice_backward", &attrs, gout, 1, &gin[0]);
}

static const struct cvy_case cases[] = {
    {"count=1", "f32[1,1]", 0, NULL},
    {"first=5 count=9", "f32[2,17,5,7]", 0, NULL},
    {"first=16 count=32", "f32[2,64,4,4]", 0, NULL},
    {"first=3 count=4", "f32[3,8,5]", 0, NULL},
};

static const struct cvy_case backward_cases[] = {
    {"count=1 channels=1", "f32[1,1]", 0, NULL},
    {"first=5 count=9 channels=17", "f32[2,9,5,7]", 0, NULL},
    {"first=16 count=32 channels=64", "f32[2,32,4,4]", 0, NULL},
    {"first=3 count=4 channels=8", "f32[3,4,5]", 0, NULL},
};

const struct cvy_op cvy_op_channel_slice = {
    .name = "channel_slice",
    .help = "y = channels first to first + count - 1 of x",
    .attrs_size = sizeof(slice_attrs),
    .attrs = attr_table,
    .n_attrs = N_FORWARD_ATTRS,
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

const struct cvy_op cvy_op_channel_slice_backward = {
    .name = "channel_slice_backward",
    .help = "dx = dy in channels first to first + count - 1, else 0",
    .attrs_size = sizeof(slice_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"dy"},
    .out_names = (const char *const[]){"dx"},
    .narrow_in = 1u << 0,
    .infer = backward_infer,
    .reference = backward_reference,
    .cases = backward_cases,
    .n_cases = CVY_N(backward_cases),
};
