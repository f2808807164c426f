/* conv2d and its two gradients: descriptors, shapes, costs, cases. The arithmetic is in conv_walk.c. */
#include "ops/conv2d.h"
#include "ops/conv_walk.h"
#include "ops/infer.h"

#include <string.h>

typedef struct cvy_conv2d_attrs conv_attrs;

#define PAIR(field, initial, min, help) \
    { #field, CVY_ATTR_PAIR, offsetof(conv_attrs, field), initial, min, CVY_MAX_SIZE, help }
static const struct cvy_attr attr_table[] = {
    PAIR(kernel, 1, 1, "height and width of the window"),
    PAIR(stride, 1, 1, "step of the window"),
    PAIR(padding, 0, 0, "zeros added on each side"),
    PAIR(dilation, 1, 1, "distance between the taps"),
    {"groups", CVY_ATTR_INT, offsetof(conv_attrs, groups), 1, 1, CVY_MAX_SIZE,
     "independent parts of the channels; as many as channels: depthwise"},
    {"pointwise", CVY_ATTR_BOOL, offsetof(conv_attrs, pointwise), 0, 0, 1,
     "the weight is a matrix O,I (nn.Linear's, of each pixel); the kernel is then 1x1"},
    PAIR(input, 0, 0, "height and width of x"),
};
enum { N_FORWARD_ATTRS = CVY_N(attr_table) - 1 };

/* ---- reference --------------------------------------------------------------------------------- */

static void zero(double *values, const struct cvy_shape *shape) {
    memset(values, 0, (size_t)cvy_shape_count(shape) * sizeof *values);
}

static void forward_reference(const struct cvy_reference *call) {
    const struct cvy_shape *y_shape = &call->out_desc[0].shape;
    const double *bias = call->n_in > 2 ? call->in[2] : NULL;
    int64_t plane = y_shape->dim[2] * y_shape->dim[3], n_planes = y_shape->dim[0] * y_shape->dim[1];
    for (int64_t k = 0; k < n_planes * plane; k++)
        call->out[0][k] = bias ? bias[k / plane % y_shape->dim[1]] : 0;
    cvy_conv_walk(&(struct cvy_conv){call->attrs, (double *)call->in[0], (double *)call->in[1], call->out[0],
                                     &call->in_desc[0].shape, y_shape},
                  CVY_CONV_FORWARD);
}

static void data_reference(const struct cvy_reference *call) {
    zero(call->out[0], &call->out_desc[0].shape);
    cvy_conv_walk(&(struct cvy_conv){call->attrs, call->out[0], (double *)call->in[1], (double *)call->in[0],
                                     &call->out_desc[0].shape, &call->in_desc[0].shape},
                  CVY_CONV_DATA);
}

static void weights_reference(const struct cvy_reference *call) {
    zero(call->out[0], &call->out_desc[0].shape);
    cvy_conv_walk(&(struct cvy_conv){call->attrs, (double *)call->in[1], call->out[0], (double *)call->in[0],
                                     &call->in_desc[1].shape, &call->in_desc[0].shape},
                  CVY_CONV_WEIGHTS);
}

/* ---- shapes ------------------------------------------------------------------------------------ */

/* The channels of x and of y must both divide into the groups. */
static cvy_status check_groups(const struct cvy_infer *call, int64_t n_in, int64_t n_out) {
    const conv_attrs *a = call->attrs;
    if (a->groups < 1 || n_in % a->groups != 0 || n_out % a->groups != 0)
        return cvy_infer_fail(call, "groups=%lld must divide both %lld and %lld channels",
                              (long long)a->groups, (long long)n_in, (long long)n_out);
    return CVY_OK;
}

/* A matrix is what a weight of 1x1 is without its last two dimensions. */
static cvy_status check_weight(const struct cvy_infer *call) {
    const conv_attrs *a = call->attrs;
    if (a->pointwise && (a->kernel[0] != 1 || a->kernel[1] != 1 || a->groups != 1))
        return cvy_infer_fail(call, "pointwise=true needs kernel=1x1 and groups=1");
    return CVY_OK;
}

static int weight_rank(const conv_attrs *a) { return a->pointwise ? 2 : 4; }

static struct cvy_shape weight_shape(const conv_attrs *a, int64_t n_in, int64_t n_out) {
    if (a->pointwise)
        return CVY_SHAPE(n_out, n_in);
    return CVY_SHAPE(n_out, n_in / a->groups, a->kernel[0], a->kernel[1]);
}

static cvy_status y_shape_of(const struct cvy_infer *call, const struct cvy_shape *x, int64_t n_out,
                             struct cvy_shape *y) {
    const conv_attrs *a = call->attrs;
    *y = CVY_SHAPE(x->dim[0], n_out, 0, 0);
    for (int axis = 0; axis < 2; axis++) {
        struct cvy_window window = cvy_conv_window(a, axis, x->dim[2 + axis]);
        y->dim[2 + axis] = cvy_window_count(&window);
        if (y->dim[2 + axis] == 0)
            return cvy_infer_fail(call, "kernel=%lldx%lld is larger than the padded image",
                                  (long long)a->kernel[0], (long long)a->kernel[1]);
    }
    return CVY_OK;
}

static cvy_status forward_infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_rank(call, 0, 4));
    CVY_TRY(check_weight(call));
    CVY_TRY(cvy_infer_rank(call, 1, weight_rank(call->attrs)));
    const struct cvy_shape *x = &call->in[0].shape;
    int64_t n_out = call->in[1].shape.dim[0];
    CVY_TRY(check_groups(call, x->dim[1], n_out));
    struct cvy_shape weight = weight_shape(call->attrs, x->dim[1], n_out);
    CVY_TRY(cvy_infer_float(call, 1, &weight));
    if (cvy_infer_has(call, 2))
        CVY_TRY(cvy_infer_float(call, 2, &CVY_SHAPE(n_out)));
    call->out[0].dtype = call->in[0].dtype;
    return y_shape_of(call, x, n_out, &call->out[0].shape);
}

static cvy_status data_infer(struct cvy_infer *call) {
    const conv_attrs *a = call->attrs;
    CVY_TRY(cvy_infer_rank(call, 0, 4));
    CVY_TRY(check_weight(call));
    CVY_TRY(cvy_infer_rank(call, 1, weight_rank(call->attrs)));
    const struct cvy_shape *dy = &call->in[0].shape, *weight = &call->in[1].shape;
    struct cvy_shape x = CVY_SHAPE(dy->dim[0], weight->dim[1] * a->groups, a->input[0], a->input[1]),
                     expected;
    CVY_TRY(check_groups(call, x.dim[1], weight->dim[0]));
    CVY_TRY(y_shape_of(call, &x, weight->dim[0], &expected));
    CVY_TRY(cvy_infer_float(call, 0, &expected));
    expected = weight_shape(a, x.dim[1], weight->dim[0]);
    CVY_TRY(cvy_infer_float(call, 1, &expected));
    call->out[0] = cvy_desc_make(call->in[0].dtype, x);
    return CVY_OK;
}

static cvy_status weights_infer(struct cvy_infer *call) {
    CVY_TRY(check_weight(call));
    CVY_TRY(cvy_infer_rank(call, 0, 4));
    CVY_TRY(cvy_infer_rank(call, 1, 4));
    const struct cvy_shape *dy = &call->in[0].shape, *x = &call->in[1].shape;
    struct cvy_shape expected;
    CVY_TRY(check_groups(call, x->dim[1], dy->dim[1]));
    CVY_TRY(y_shape_of(call, x, dy->dim[1], &expected));
    CVY_TRY(cvy_infer_float(call, 0, &expected));
    call->out[0] = cvy_desc_make(CVY_F32, weight_shape(call->attrs, x->dim[1], dy->dim[1]));
    return CVY_OK;
}

/* ---- cost and gradient ------------------------------------------------------------------------- */

/* One multiply and add per tap, input channel of the group and element of y. */
static void cost(const struct cvy_infer *call, const struct cvy_shape *y, int64_t n_in,
                 struct cvy_cost *out) {
    const conv_attrs *a = call->attrs;
    int64_t products = a->kernel[0] * a->kernel[1] * (n_in / a->groups);
    cvy_cost_fill(call, 2 * (double)products * (double)cvy_shape_count(y), out);
}

static void forward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cost(call, &call->out[0].shape, call->in[0].shape.dim[1], out);
}

static void data_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cost(call, &call->in[0].shape, call->out[0].shape.dim[1], out);
}

static void weights_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cost(call, &call->in[0].shape, call->in[1].shape.dim[1], out);
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    const struct cvy_node of = *node; /* the list of nodes moves when it grows */
    conv_attrs attrs = *(const conv_attrs *)of.attrs;
    const struct cvy_shape *x = &cvy_graph_value(g, of.in[0])->desc.shape;
    attrs.input[0] = x->dim[2];
    attrs.input[1] = x->dim[3];
    if (want & 1)
        CVY_TRY(cvy_graph_add_grad(g, &of, "conv2d_backward_data", &attrs, (cvy_value[]){gout[0], of.in[1]},
                                   2, &gin[0]));
    memset(attrs.input, 0, sizeof attrs.input);
    if (want & 2)
        CVY_TRY(cvy_graph_add_grad(g, &of, "conv2d_backward_weights", &attrs,
                                   (cvy_value[]){gout[0], of.in[0]}, 2, &gin[1]));
    if (want & 4)
        CVY_TRY(cvy_graph_add_grad(g, &of, "channel_sum", NULL, &gout[0], 1, &gin[2]));
    return CVY_OK;
}

/* ---- cases ------------------------------------------------------------------------------------- */

static const struct cvy_case forward_cases[] = {
    {"", "f32[1,1,1,1] f32[1,1,1,1] f32[1]", 0, NULL},
    {"", "f32[3,17,5,7] f32[3,17,1,1] -", 0, NULL},
    {"kernel=3x3 padding=1x1", "f32[2,3,8,8] f32[17,3,3,3] f32[17]", 0, NULL},
    {"kernel=3x3 padding=1x1", "f32[2,64,9,9] f32[64,64,3,3] -", 5e-5, NULL}, /* Winograd's bound */
    {"kernel=3x3 stride=2x2 padding=1x1", "f32[2,16,9,8] f32[32,16,3,3] -", 0, NULL},
    {"kernel=7x7 stride=2x2 padding=3x3", "f32[1,3,17,17] f32[16,3,7,7] -", 0, NULL},
    {"kernel=5x5 padding=2x2", "f32[2,1,8,8] f32[6,1,5,5] f32[6]", 0, NULL},
    {"stride=2x2", "f32[2,16,7,7] f32[32,16,1,1] -", 0, NULL},
    {"kernel=3x3 padding=2x2 dilation=2x2", "f32[2,4,7,9] f32[5,4,3,3] f32[5]", 0, NULL},
    {"kernel=3x3 padding=1x1 groups=2", "f32[2,6,5,5] f32[8,3,3,3] f32[8]", 0, NULL},
    {"kernel=3x3 padding=1x1 groups=17", "f32[2,17,6,6] f32[17,1,3,3] f32[17]", 0, NULL},
    {"kernel=2x3 stride=3x1 padding=3x4 dilation=1x2", "f32[1,2,4,5] f32[3,2,2,3] f32[3]", 0, NULL},
    {"kernel=1x3 padding=0x1 groups=4", "f32[1,8,3,5] f32[16,2,1,3] -", 0, NULL},
    {"pointwise=true", "f32[3,17,5,7] f32[40,17] f32[40]", 0, NULL},
    {"pointwise=true", "f32[2,64,4,4] f32[32,64] -", 0, NULL},
};

static const struct cvy_case data_cases[] = {
    {"input=1x1", "f32[1,1,1,1] f32[1,1,1,1]", 0, NULL},
    {"kernel=3x3 padding=1x1 input=8x8", "f32[2,17,8,8] f32[17,3,3,3]", 0, NULL},
    {"kernel=3x3 padding=1x1 input=9x9", "f32[2,64,9,9] f32[64,64,3,3]", 5e-5, NULL},
    {"kernel=3x3 stride=2x2 padding=1x1 input=9x8", "f32[2,32,5,4] f32[32,16,3,3]", 0, NULL},
    {"stride=2x2 input=8x7", "f32[2,32,4,4] f32[32,16,1,1]", 0, NULL},
    {"kernel=3x3 padding=2x2 dilation=2x2 input=7x9", "f32[2,5,7,9] f32[5,4,3,3]", 0, NULL},
    {"kernel=3x3 padding=1x1 groups=17 input=6x6", "f32[2,17,6,6] f32[17,1,3,3]", 0, NULL},
    {"kernel=3x3 padding=1x1 groups=2 input=5x5", "f32[2,8,5,5] f32[8,3,3,3]", 0, NULL},
    {"kernel=2x3 stride=3x1 padding=3x4 dilation=1x2 input=4x5", "f32[1,3,3,9] f32[3,2,2,3]", 0, NULL},
    {"pointwise=true input=5x7", "f32[3,40,5,7] f32[40,17]", 0, NULL},
    {"pointwise=true input=4x4", "f32[2,32,4,4] f32[32,64]", 0, NULL},
};

static const struct cvy_case weights_cases[] = {
    {"", "f32[1,1,1,1] f32[1,1,1,1]", 0, NULL},
    {"", "f32[3,24,5,3] f32[3,40,5,3]", 0, NULL},
    {"kernel=3x3 padding=1x1", "f32[2,17,8,8] f32[2,3,8,8]", 0, NULL},
    {"kernel=3x3 padding=1x1", "f32[2,64,9,9] f32[2,64,9,9]", 5e-5, NULL},
    {"kernel=3x3 stride=2x2 padding=1x1", "f32[2,32,5,4] f32[2,16,9,8]", 0, NULL},
    {"stride=2x2", "f32[2,32,4,4] f32[2,16,8,7]", 0, NULL},
    {"kernel=3x3 padding=2x2 dilation=2x2", "f32[2,5,7,9] f32[2,4,7,9]", 0, NULL},
    {"kernel=3x3 padding=1x1 groups=17", "f32[2,17,6,6] f32[2,17,6,6]", 0, NULL},
    {"kernel=3x3 padding=1x1 groups=2", "f32[2,8,5,5] f32[2,6,5,5]", 0, NULL},
    {"kernel=2x3 stride=3x1 padding=3x4 dilation=1x2", "f32[1,3,3,9] f32[1,2,4,5]", 0, NULL},
    {"pointwise=true", "f32[3,40,5,7] f32[3,17,5,7]", 0, NULL},
    {"pointwise=true", "f32[2,32,4,4] f32[2,64,4,4]", 0, NULL},
};

/* ---- descriptors ------------------------------------------------------------------------------- */

const struct cvy_op cvy_op_conv2d = {
    .name = "conv2d",
    .help = "y[n,o] = bias[o] + sum over i of x[n,i] correlated with weight[o,i]",
    .attrs_size = sizeof(conv_attrs),
    .attrs = attr_table,
    .n_attrs = N_FORWARD_ATTRS,
    .n_in = 3,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"x", "weight", "bias"},
    .out_names = (const char *const[]){"y"},
    .flags = CVY_OP_PRODUCTS | CVY_OP_LOW,
    .narrow_in = 1u << 0 | 1u << 1 | 1u << 2,
    .infer = forward_infer,
    .grad = grad,
    .reference = forward_reference,
    .cost = forward_cost,
    .cases = forward_cases,
    .n_cases = CVY_N(forward_cases),
};

const struct cvy_op cvy_op_conv2d_backward_data = {
    .name = "conv2d_backward_data",
    .help = "dx of conv2d: dy correlated with the flipped weight",
    .attrs_size = sizeof(conv_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"dy", "weight"},
    .out_names = (const char *const[]){"dx"},
    .flags = CVY_OP_PRODUCTS,
    .narrow_in = 1u << 0 | 1u << 1,
    .infer = data_infer,
    .reference = data_reference,
    .cost = data_cost,
    .cases = data_cases,
    .n_cases = CVY_N(data_cases),
};

const struct cvy_op cvy_op_conv2d_backward_weights = {
    .name = "conv2d_backward_weights",
    .help = "dweight of conv2d: x correlated with dy, summed over the images",
    .attrs_size = sizeof(conv_attrs),
    .attrs = attr_table,
    .n_attrs = N_FORWARD_ATTRS,
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"dy", "x"},
    .out_names = (const char *const[]){"dweight"},
    .flags = CVY_OP_PRODUCTS,
    .narrow_in = 1u << 0 | 1u << 1,
    .infer = weights_infer,
    .reference = weights_reference,
    .cost = weights_cost,
    .cases = weights_cases,
    .n_cases = CVY_N(weights_cases),
};
