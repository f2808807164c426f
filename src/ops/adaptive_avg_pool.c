/* adaptive_avg_pool and its gradient: output size P x Q whatever the input's. Bin p of P covers the rows from
   floor(p H / P) to ceil((p + 1) H / P) - 1: bins overlap when P does not divide H. Columns likewise. */
#include "ops/infer.h"
#include "ops/pool.h"

#include <string.h>

typedef struct cvy_adaptive_pool_attrs pool_attrs;

static const struct cvy_attr attr_table[] = {
    {"output", CVY_ATTR_PAIR, offsetof(pool_attrs, output), 1, 1, CVY_MAX_SIZE, "height and width of y"},
    {"input", CVY_ATTR_PAIR, offsetof(pool_attrs, input), 0, 0, CVY_MAX_SIZE, "height and width of x"},
};
enum { N_FORWARD_ATTRS = CVY_N(attr_table) - 1 };

static int64_t bin_first(int64_t bin, int64_t n_bins, int64_t in) { return bin * in / n_bins; }
static int64_t bin_end(int64_t bin, int64_t n_bins, int64_t in) {
    return ((bin + 1) * in + n_bins - 1) / n_bins;
}

/* The two kernels are one walk over the bins: forward gathers x into y, backward spreads dy into dx. */
typedef void bin_function(double *y, double *x_row, int64_t n, double divisor);

static void gather(double *y, double *x_row, int64_t n, double divisor) {
    for (int64_t w = 0; w < n; w++)
        *y += x_row[w] / divisor;
}

static void spread(double *y, double *x_row, int64_t n, double divisor) {
    for (int64_t w = 0; w < n; w++)
        x_row[w] += *y / divisor;
}

static void walk(const struct cvy_shape *x_shape, const struct cvy_shape *y_shape, double *x, double *y,
                 bin_function *row) {
    int64_t height = x_shape->dim[2], width = x_shape->dim[3], n_p = y_shape->dim[2], n_q = y_shape->dim[3];
    int64_t n = cvy_shape_count(y_shape);
    for (int64_t i = 0; i < n; i++) { /* i = (plane of x, p, q) */
        int64_t p = i / n_q % n_p, q = i % n_q;
        int64_t h = bin_first(p, n_p, height), h_end = bin_end(p, n_p, height);
        int64_t w = bin_first(q, n_q, width), w_end = bin_end(q, n_q, width);
        double *from = x + i / (n_p * n_q) * height * width;
        for (int64_t r = h; r < h_end; r++)
            row(y + i, from + r * width + w, w_end - w, (double)((h_end - h) * (w_end - w)));
    }
}

static void zero(double *values, const struct cvy_shape *shape) {
    memset(values, 0, (size_t)cvy_shape_count(shape) * sizeof *values);
}

static void forward_reference(const struct cvy_reference *call) {
    zero(call->out[0], &call->out_desc[0].shape);
    walk(&call->in_desc[0].shape, &call->out_desc[0].shape, (double *)call->in[0], call->out[0], gather);
}

static void backward_reference(const struct cvy_reference *call) {
    zero(call->out[0], &call->out_desc[0].shape);
    walk(&call->out_desc[0].shape, &call->in_desc[0].shape, call->out[0], (double *)call->in[0], spread);
}

static cvy_status forward_infer(struct cvy_infer *call) {
    const pool_attrs *a = call->attrs;
    CVY_TRY(cvy_infer_rank(call, 0, 4));
    const struct cvy_shape *x = &call->in[0].shape;
    call->out[0] =
        cvy_desc_make(call->in[0].dtype, CVY_SHAPE(x->dim[0], x->dim[1], a->output[0], a->output[1]));
    return CVY_OK;
}

static cvy_status backward_infer(struct cvy_infer *call) {
    const pool_attrs *a = call->attrs;
    CVY_TRY(cvy_infer_rank(call, 0, 4));
    const struct cvy_shape *dy = &call->in[0].shape;
    CVY_TRY(cvy_infer_float(call, 0, &CVY_SHAPE(dy->dim[0], dy->dim[1], a->output[0], a->output[1])));
    if (a->input[0] < 1 || a->input[1] < 1)
        return cvy_infer_fail(call, "input=HxW, the size of x, is not given");
    call->out[0] =
        cvy_desc_make(call->in[0].dtype, CVY_SHAPE(dy->dim[0], dy->dim[1], a->input[0], a->input[1]));
    return CVY_OK;
}

/* One addition per element of the larger side (overlaps apart). */
static void cost(const struct cvy_infer *call, struct cvy_cost *out) {
    double in = (double)cvy_shape_count(&call->in[0].shape), y = (double)cvy_shape_count(&call->out[0].shape);
    cvy_cost_fill(call, in > y ? in : y, out);
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    (void)want; /* one input: it is wanted */
    const struct cvy_shape *x = &cvy_graph_value(g, node->in[0])->desc.shape;
    pool_attrs attrs = *(const pool_attrs *)node->attrs;
    attrs.input[0] = x->dim[2];
    attrs.input[1] = x->dim[3];
    return cvy_graph_add_grad(g, node, "adaptive_avg_pool_backward", &attrs, gout, 1, &gin[0]);
}

static const struct cvy_case forward_cases[] = {
    {"", "f32[1,1,1,1]", 0, NULL},
    {"", "f32[2,17,7,7]", 0, NULL},
    {"", "f32[2,64,4,4]", 0, NULL},
    {"output=3x2", "f32[2,3,7,5]", 0, NULL},
    {"output=2x2", "f32[1,16,8,4]", 0, NULL},
    {"output=5x7", "f32[1,3,2,3]", 0, NULL}, /* more bins than pixels */
};

static const struct cvy_case backward_cases[] = {
    {"input=1x1", "f32[1,1,1,1]", 0, NULL},
    {"input=7x7", "f32[2,17,1,1]", 0, NULL},
    {"input=4x4", "f32[2,64,1,1]", 0, NULL},
    {"output=3x2 input=7x5", "f32[2,3,3,2]", 0, NULL},
    {"output=5x7 input=2x3", "f32[1,3,5,7]", 0, NULL},
};

const struct cvy_op cvy_op_adaptive_avg_pool = {
    .name = "adaptive_avg_pool",
    .help = "y[p,q] = the mean of x over rows floor(p H/P) to ceil((p+1) H/P) and such columns",
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
    .cost = cost,
    .cases = forward_cases,
    .n_cases = CVY_N(forward_cases),
};

const struct cvy_op cvy_op_adaptive_avg_pool_backward = {
    .name = "adaptive_avg_pool_backward",
    .help = "dx = dy of each bin over its size, added up",
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
    .cost = cost,
    .cases = backward_cases,
    .n_cases = CVY_N(backward_cases),
};
