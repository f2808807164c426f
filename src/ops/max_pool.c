/* max_pool and its gradient. `index` is the position of the winner within its image plane, h W + w; the first
   of equals wins, and NaN beats everything, so that it is not hidden. Padding never wins. */
#include "ops/cases.h"
#include "ops/infer.h"
#include "ops/pool.h"
#include "ops/window.h"

#include <math.h>
#include <string.h>

typedef struct cvy_pool_attrs pool_attrs;

#define PAIR(field, initial, min, help) \
    { #field, CVY_ATTR_PAIR, offsetof(pool_attrs, field), initial, min, CVY_MAX_SIZE, help }
static const struct cvy_attr attr_table[] = {
    PAIR(kernel, 1, 1, "height and width of the window"),
    PAIR(stride, 0, 0, "step of the window; 0: the kernel's size"),
    PAIR(padding, 0, 0, "border that never wins; at most half the kernel"),
    PAIR(dilation, 1, 1, "distance between the taps"),
    {"ceil_mode", CVY_ATTR_BOOL, offsetof(pool_attrs, ceil_mode), 0, 0, 1,
     "a last window may hang over the end"},
    PAIR(input, 0, 0, "height and width of x"),
};
enum { N_FORWARD_ATTRS = CVY_N(attr_table) - 1 };

static void plane_windows(const pool_attrs *a, int64_t height, int64_t width, struct cvy_window out[2]) {
    for (int axis = 0; axis < 2; axis++)
        out[axis] = (struct cvy_window){axis ? width : height, a->kernel[axis],   cvy_pool_stride(a, axis),
                                        a->padding[axis],      a->dilation[axis], a->ceil_mode};
}

/* The winner of the window whose first tap is at (h, w). */
static int64_t winner(const struct cvy_window axes[2], const double *x, int64_t h, int64_t w) {
    int64_t best = -1;
    for (int64_t k = 0; k < axes[0].kernel; k++) {
        for (int64_t l = 0; l < axes[1].kernel; l++) {
            int64_t row = h + k * axes[0].dilation, column = w + l * axes[1].dilation;
            if (row < 0 || row >= axes[0].in || column < 0 || column >= axes[1].in)
                continue;
            int64_t at = row * axes[1].in + column;
            if (best < 0 || x[at] > x[best] || (isnan(x[at]) && !isnan(x[best])))
                best = at;
        }
    }
    return best;
}

static void forward_reference(const struct cvy_reference *call) {
    const struct cvy_shape *x = &call->in_desc[0].shape, *y = &call->out_desc[0].shape;
    struct cvy_window axes[2];
    plane_windows(call->attrs, x->dim[2], x->dim[3], axes);
    int64_t plane = x->dim[2] * x->dim[3], n = cvy_shape_count(y);
    for (int64_t i = 0; i < n; i++) { /* i = (plane of x, p, q) */
        int64_t q = i % y->dim[3], p = i / y->dim[3] % y->dim[2];
        const double *from = call->in[0] + i / (y->dim[2] * y->dim[3]) * plane;
        int64_t best =
            winner(axes, from, p * axes[0].stride - axes[0].padding, q * axes[1].stride - axes[1].padding);
        call->out[0][i] = from[best];
        call->out[1][i] = (double)best;
    }
}

static void backward_reference(const struct cvy_reference *call) {
    const struct cvy_shape *dy = &call->in_desc[0].shape, *dx = &call->out_desc[0].shape;
    int64_t plane = dx->dim[2] * dx->dim[3], n = cvy_shape_count(dy);
    memset(call->out[0], 0, (size_t)cvy_shape_count(dx) * sizeof(double));
    for (int64_t i = 0; i < n; i++)
        call->out[0][i / (dy->dim[2] * dy->dim[3]) * plane + (int64_t)call->in[1][i]] += call->in[0][i];
}

/* The shape of y for planes of height x width. */
static cvy_status y_shape(const struct cvy_infer *call, const int64_t dims[4], struct cvy_shape *out) {
    const pool_attrs *a = call->attrs;
    struct cvy_window axes[2];
    plane_windows(a, dims[2], dims[3], axes);
    *out = CVY_SHAPE(dims[0], dims[1], 0, 0);
    for (int axis = 0; axis < 2; axis++) {
        if (2 * a->padding[axis] > a->kernel[axis])
            return cvy_infer_fail(call, "padding %lld is more than half the kernel, %lld",
                                  (long long)a->padding[axis], (long long)a->kernel[axis]);
        if (a->padding[axis] > 0 &&
            a->dilation[axis] > axes[axis].in) /* a window might touch padding alone */
            return cvy_infer_fail(call, "dilation %lld is larger than the image",
                                  (long long)a->dilation[axis]);
        out->dim[2 + axis] = cvy_window_count(&axes[axis]);
        if (out->dim[2 + axis] == 0)
            return cvy_infer_fail(call, "kernel=%lldx%lld is larger than the padded image",
                                  (long long)a->kernel[0], (long long)a->kernel[1]);
    }
    return CVY_OK;
}

static cvy_status forward_infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_rank(call, 0, 4));
    struct cvy_shape y;
    CVY_TRY(y_shape(call, call->in[0].shape.dim, &y));
    call->out[0] = cvy_desc_make(call->in[0].dtype, y);
    call->out[1] = cvy_desc_make(CVY_I32, y);
    return CVY_OK;
}

static cvy_status backward_infer(struct cvy_infer *call) {
    const pool_attrs *a = call->attrs;
    CVY_TRY(cvy_infer_rank(call, 0, 4));
    const struct cvy_shape *dy = &call->in[0].shape;
    struct cvy_shape dx = CVY_SHAPE(dy->dim[0], dy->dim[1], a->input[0], a->input[1]), expected;
    CVY_TRY(y_shape(call, dx.dim, &expected));
    CVY_TRY(cvy_infer_float(call, 0, &expected));
    CVY_TRY(cvy_infer_typed(call, 1, CVY_I32, &expected));
    call->out[0] = cvy_desc_make(call->in[0].dtype, dx);
    return CVY_OK;
}

static void forward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    const pool_attrs *a = call->attrs;
    cvy_cost_fill(call, (double)(a->kernel[0] * a->kernel[1]) * (double)cvy_shape_count(&call->out[0].shape),
                  out);
}

static void backward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, (double)cvy_shape_count(&call->in[0].shape), out);
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    (void)want; /* one input: it is wanted */
    CVY_TRY(cvy_grad_check(g, node, gout));
    const struct cvy_shape *x = &cvy_graph_value(g, node->in[0])->desc.shape;
    pool_attrs attrs = *(const pool_attrs *)node->attrs;
    attrs.input[0] = x->dim[2];
    attrs.input[1] = x->dim[3];
    return cvy_graph_add_grad(g, node, "max_pool_backward", &attrs, (cvy_value[]){gout[0], node->out[1]}, 2,
                              &gin[0]);
}

static const struct cvy_case forward_cases[] = {
    {"", "f32[1,1,1,1]", 0, NULL},
    {"kernel=2x2", "f32[2,17,7,9]", 0, NULL},
    {"kernel=3x3 stride=2x2 padding=1x1", "f32[2,64,8,8]", 0, NULL},
    {"kernel=3x3 stride=2x2 padding=1x1", "f32[3,3,7,5]", 0, NULL},
    {"kernel=3x3 stride=2x2 ceil_mode=true", "f32[2,3,8,6]", 0, NULL},
    {"kernel=2x2 stride=3x3 padding=1x1 ceil_mode=true", "f32[1,3,6,6]", 0, NULL},
    {"kernel=2x3 stride=1x2 padding=1x0 dilation=2x1", "f32[2,5,6,8]", 0, NULL},
};

/* Winners as a forward call leaves them: a tap of each window that lies within the image, drawn by chance. A gradient
   may rely on that. */
static void fill_winners(const pool_attrs *a, const struct cvy_desc *desc, uint64_t seed, double *values) {
    struct cvy_window axes[2];
    int64_t n_p = desc->shape.dim[2], n_q = desc->shape.dim[3], n_taps = a->kernel[0] * a->kernel[1];
    plane_windows(a, a->input[0], a->input[1], axes);
    cvy_fill_below(1, desc, seed, n_taps, values);
    for (int64_t i = 0; i < cvy_shape_count(&desc->shape); i++) {
        int64_t h = i / n_q % n_p * axes[0].stride - axes[0].padding,
                w = i % n_q * axes[1].stride - axes[1].padding;
        for (int64_t tap = (int64_t)values[i];; tap = (tap + 1) % n_taps) {
            int64_t row = h + tap / a->kernel[1] * axes[0].dilation,
                    column = w + tap % a->kernel[1] * axes[1].dilation;
            if (row >= 0 && row < a->input[0] && column >= 0 && column < a->input[1]) {
                values[i] = (double)(row * a->input[1] + column);
                break;
            }
        }
    }
}

#define CEIL_CASE "kernel=3x3 stride=2x2 ceil_mode=true input=8x6"
#define DILATED_CASE "kernel=2x3 stride=1x2 padding=1x0 dilation=2x1 input=6x8"
#define PADDED_CASE "kernel=3x3 stride=2x2 padding=1x1 input=8x8"
#define SIMPLE_CASE "kernel=2x2 input=7x9"

extern const struct cvy_op cvy_op_max_pool_backward;
#define FILL_BACKWARD(name, text)                                                                         \
    static void name(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {                 \
        pool_attrs attrs;                                                                                 \
        cvy_attrs_default(&cvy_op_max_pool_backward, &attrs);                                             \
        if (desc->dtype == CVY_I32 && cvy_attrs_parse(&cvy_op_max_pool_backward, text, &attrs) == CVY_OK) \
            fill_winners(&attrs, desc, seed, values);                                                     \
        else                                                                                              \
            cvy_fill_normal(i, desc, seed, values);                                                       \
    }
FILL_BACKWARD(fill_simple, SIMPLE_CASE)
FILL_BACKWARD(fill_padded, PADDED_CASE)
FILL_BACKWARD(fill_ceil, CEIL_CASE)
FILL_BACKWARD(fill_dilated, DILATED_CASE)

static const struct cvy_case backward_cases[] = {
    {SIMPLE_CASE, "f32[2,17,3,4] i32[2,17,3,4]", 0, fill_simple},
    {PADDED_CASE, "f32[2,64,4,4] i32[2,64,4,4]", 0, fill_padded},
    {CEIL_CASE, "f32[2,3,4,3] i32[2,3,4,3]", 0, fill_ceil},
    {DILATED_CASE, "f32[2,5,6,3] i32[2,5,6,3]", 0, fill_dilated},
};

const struct cvy_op cvy_op_max_pool = {
    .name = "max_pool",
    .help = "y = the largest x of each window",
    .attrs_size = sizeof(pool_attrs),
    .attrs = attr_table,
    .n_attrs = N_FORWARD_ATTRS,
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 2,
    .in_names = (const char *const[]){"x"},
    .out_names = (const char *const[]){"y", "index"},
    .private_out = 1u << 1,
    .flags = CVY_OP_FOLLOWS,
    .narrow_in = 1u << 0,
    .infer = forward_infer,
    .grad = grad,
    .reference = forward_reference,
    .cost = forward_cost,
    .cases = forward_cases,
    .n_cases = CVY_N(forward_cases),
};

const struct cvy_op cvy_op_max_pool_backward = {
    .name = "max_pool_backward",
    .help = "dx = dy at the winner of each window, added up; else 0",
    .attrs_size = sizeof(pool_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"dy", "index"},
    .out_names = (const char *const[]){"dx"},
    .narrow_in = 1u << 0,
    .infer = backward_infer,
    .reference = backward_reference,
    .cost = backward_cost,
    .cases = backward_cases,
    .n_cases = CVY_N(backward_cases),
};
