/* avg_pool and its gradient. The divisor of a window is the number of its elements, with the padding
   (count_include_pad) or without it; what hangs over the padded end never counts. */
#include "ops/infer.h"
#include "ops/pool.h"
#include "ops/window.h"

#include <string.h>

typedef struct cvy_pool_attrs pool_attrs;

#define PAIR(field, initial, min, help) \
    { #field, CVY_ATTR_PAIR, offsetof(pool_attrs, field), initial, min, CVY_MAX_SIZE, help }
static const struct cvy_attr attr_table[] = {
    PAIR(kernel, 1, 1, "height and width of the window"),
    PAIR(stride, 0, 0, "step of the window; 0: the kernel's size"),
    PAIR(padding, 0, 0, "zeros on each side; at most half the kernel"),
    {"ceil_mode", CVY_ATTR_BOOL, offsetof(pool_attrs, ceil_mode), 0, 0, 1,
     "a last window may hang over the end"},
    {"count_include_pad", CVY_ATTR_BOOL, offsetof(pool_attrs, count_include_pad), 1, 0, 1,
     "padding counts in the divisor"},
    PAIR(input, 0, 0, "height and width of x"),
};
enum { N_FORWARD_ATTRS = CVY_N(attr_table) - 1 };

static struct cvy_window axis_window(const pool_attrs *a, int axis, int64_t in) {
    return (struct cvy_window){in, a->kernel[axis], cvy_pool_stride(a, axis), a->padding[axis],
                               1,  a->ceil_mode};
}

struct span {           /* of one window along one axis */
    int64_t first, end; /* within the image */
    int64_t padded;     /* length with the padding */
};

static struct span span_of(const struct cvy_window *w, int64_t out) {
    int64_t first = out * w->stride - w->padding, end = first + w->kernel;
    end = end < w->in + w->padding ? end : w->in + w->padding;
    return (struct span){first > 0 ? first : 0, end < w->in ? end : w->in, end - first};
}

/* The two kernels are one walk over the windows: forward gathers x into y, backward spreads dy into dx. */
typedef void window_function(double *y, double *x_row, int64_t n, double divisor);

static void gather(double *y, double *x_row, int64_t n, double divisor) {
    for (int64_t w = 0; w < n; w++)
        *y += x_row[w] / divisor;
}

static void spread(double *y, double *x_row, int64_t n, double divisor) {
    for (int64_t w = 0; w < n; w++)
        x_row[w] += *y / divisor;
}

static void walk(const pool_attrs *a, const struct cvy_shape *x_shape, const struct cvy_shape *y_shape,
                 double *x, double *y, window_function *row) {
    int64_t width = x_shape->dim[3], plane = x_shape->dim[2] * width, n = cvy_shape_count(y_shape);
    struct cvy_window rows = axis_window(a, 0, x_shape->dim[2]), columns = axis_window(a, 1, width);
    for (int64_t i = 0; i < n; i++) { /* i = (plane of x, p, q) */
        struct span h = span_of(&rows, i / y_shape->dim[3] % y_shape->dim[2]);
        struct span w = span_of(&columns, i % y_shape->dim[3]);
        double *from = x + i / (y_shape->dim[2] * y_shape->dim[3]) * plane;
        double divisor = a->count_include_pad ? (double)(h.padded * w.padded)
                                              : (double)((h.end - h.first) * (w.end - w.first));
        for (int64_t r = h.first; r < h.end; r++)
            row(y + i, from + r * width + w.first, w.end - w.first, divisor);
    }
}

static void zero(double *values, const struct cvy_shape *shape) {
    memset(values, 0, (size_t)cvy_shape_count(shape) * sizeof *values);
}

static void forward_reference(const struct cvy_reference *call) {
    zero(call->out[0], &call->out_desc[0].shape);
    walk(call->attrs, &call->in_desc[0].shape, &call->out_desc[0].shape, (double *)call->in[0], call->out[0],
         gather);
}

static void backward_reference(const struct cvy_reference *call) {
    zero(call->out[0], &call->out_desc[0].shape);
    walk(call->attrs, &call->out_desc[0].shape, &call->in_desc[0].shape, call->out[0], (double *)call->in[0],
         spread);
}

static cvy_status y_shape(const struct cvy_infer *call, const int64_t dims[4], struct cvy_shape *out) {
    const pool_attrs *a = call->attrs;
    *out = CVY_SHAPE(dims[0], dims[1], 0, 0);
    for (int axis = 0; axis < 2; axis++) {
        struct cvy_window window = axis_window(a, axis, dims[2 + axis]);
        if (2 * a->padding[axis] > a->kernel[axis])
            return cvy_infer_fail(call, "padding %lld is more than half the kernel, %lld",
                                  (long long)a->padding[axis], (long long)a->kernel[axis]);
        out->dim[2 + axis] = cvy_window_count(&window);
        if (out->dim[2 + axis] == 0)
            return cvy_infer_fail(call, "kernel=%lldx%lld is larger than the padded image",
                                  (long long)a->kernel[0], (long long)a->kernel[1]);
    }
    return CVY_OK;
}

static cvy_status forward_infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_rank(call, 0, 4));
    call->out[0].dtype = call->in[0].dtype;
    return y_shape(call, call->in[0].shape.dim, &call->out[0].shape);
}

static cvy_status backward_infer(struct cvy_infer *call) {
    const pool_attrs *a = call->attrs;
    CVY_TRY(cvy_infer_rank(call, 0, 4));
    const struct cvy_shape *dy = &call->in[0].shape;
    struct cvy_shape dx = CVY_SHAPE(dy->dim[0], dy->dim[1], a->input[0], a->input[1]), expected;
    CVY_TRY(y_shape(call, dx.dim, &expected));
    CVY_TRY(cvy_infer_float(call, 0, &expected));
    call->out[0] = cvy_desc_make(call->in[0].dtype, dx);
    return CVY_OK;
}

/* One addition per tap and window. */
static void forward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    const pool_attrs *a = call->attrs;
    cvy_cost_fill(call, (double)(a->kernel[0] * a->kernel[1]) * (double)cvy_shape_count(&call->out[0].shape),
                  out);
}

static void backward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    const pool_attrs *a = call->attrs;
    cvy_cost_fill(call, (double)(a->kernel[0] * a->kernel[1]) * (double)cvy_shape_count(&call->in[0].shape),
                  out);
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    (void)want; /* one input: it is wanted */
    const struct cvy_shape *x = &cvy_graph_value(g, node->in[0])->desc.shape;
    pool_attrs attrs = *(const pool_attrs *)node->attrs;
    attrs.input[0] = x->dim[2];
    attrs.input[1] = x->dim[3];
    return cvy_graph_add_grad(g, node, "avg_pool_backward", &attrs, gout, 1, &gin[0]);
}

static const struct cvy_case forward_cases[] = {
    {"", "f32[1,1,1,1]", 0, NULL},
    {"kernel=2x2", "f32[2,17,7,9]", 0, NULL},
    {"kernel=4x4", "f32[2,64,4,4]", 0, NULL},
    {"kernel=3x3 stride=2x2 padding=1x1", "f32[3,3,7,5]", 0, NULL},
    {"kernel=3x3 stride=2x2 padding=1x1 count_include_pad=false", "f32[2,64,8,8]", 0, NULL},
    {"kernel=3x3 stride=2x2 ceil_mode=true", "f32[2,3,8,6]", 0, NULL},
    {"kernel=3x2 stride=2x3 padding=1x1 ceil_mode=true count_include_pad=false", "f32[1,3,6,6]", 0, NULL},
    {"kernel=3x2 stride=2x3 padding=1x1 ceil_mode=true", "f32[1,3,6,6]", 0, NULL},
};

static const struct cvy_case backward_cases[] = {
    {"kernel=2x2 input=7x9", "f32[2,17,3,4]", 0, NULL},
    {"kernel=4x4 input=4x4", "f32[2,64,1,1]", 0, NULL},
    {"kernel=3x3 stride=2x2 padding=1x1 input=7x5", "f32[3,3,4,3]", 0, NULL},
    {"kernel=3x3 stride=2x2 padding=1x1 count_include_pad=false input=8x8", "f32[2,64,4,4]", 0, NULL},
    {"kernel=3x3 stride=2x2 ceil_mode=true input=8x6", "f32[2,3,4,3]", 0, NULL},
};

const struct cvy_op cvy_op_avg_pool = {
    .name = "avg_pool",
    .help = "y = the mean of x over each window",
    .attrs_size = sizeof(pool_attrs),
    .attrs = attr_table,
    .n_attrs = N_FORWARD_ATTRS,
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"x"},
    .out_names = (const char *const[]){"y"},
    .flags = CVY_OP_FOLLOWS,
    .narrow_in = 1u << 0,
    .infer = forward_infer,
    .grad = grad,
    .reference = forward_reference,
    .cost = forward_cost,
    .cases = forward_cases,
    .n_cases = CVY_N(forward_cases),
};

const struct cvy_op cvy_op_avg_pool_backward = {
    .name = "avg_pool_backward",
    .help = "dx = dy of each window over its size, added up",
    .attrs_size = sizeof(pool_attrs),
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
    .cost = backward_cost,
    .cases = backward_cases,
    .n_cases = CVY_N(backward_cases),
};
