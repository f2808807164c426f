/* linear and its two gradients: y = x weight^T + bias over the last dimension of x, whatever its rank (as
   nn.Linear). The leading dimensions count as one, "rows". */
#include "ops/channel_sum.h"
#include "ops/infer.h"

#include <string.h>

/* ---- reference: x [rows,in]  weight [out,in]  y [rows,out] -------------------------------------- */

static int64_t last(const struct cvy_desc *desc) { return desc->shape.dim[desc->shape.n - 1]; }
static int64_t rows_of(const struct cvy_desc *desc) { return cvy_shape_count(&desc->shape) / last(desc); }

static void forward_reference(const struct cvy_reference *call) {
    int64_t n_in = last(&call->in_desc[0]), n_out = last(&call->out_desc[0]),
            rows = rows_of(&call->in_desc[0]);
    const double *bias = call->n_in > 2 ? call->in[2] : NULL;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t o = 0; o < n_out; o++) {
            double sum = bias ? bias[o] : 0;
            for (int64_t i = 0; i < n_in; i++)
                sum += call->in[0][r * n_in + i] * call->in[1][o * n_in + i];
            call->out[0][r * n_out + o] = sum;
        }
    }
}

static void data_reference(const struct cvy_reference *call) {
    int64_t n_in = last(&call->out_desc[0]), n_out = last(&call->in_desc[0]),
            rows = rows_of(&call->in_desc[0]);
    memset(call->out[0], 0, (size_t)(rows * n_in) * sizeof(double));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t o = 0; o < n_out; o++) {
            for (int64_t i = 0; i < n_in; i++)
                call->out[0][r * n_in + i] += call->in[0][r * n_out + o] * call->in[1][o * n_in + i];
        }
    }
}

static void weights_reference(const struct cvy_reference *call) {
    int64_t n_in = last(&call->in_desc[1]), n_out = last(&call->in_desc[0]),
            rows = rows_of(&call->in_desc[0]);
    memset(call->out[0], 0, (size_t)(n_out * n_in) * sizeof(double));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t o = 0; o < n_out; o++) {
            for (int64_t i = 0; i < n_in; i++)
                call->out[0][o * n_in + i] += call->in[0][r * n_out + o] * call->in[1][r * n_in + i];
        }
    }
}

/* ---- shapes, cost, gradient ---------------------------------------------------------------------- */

static cvy_status check_rows(const struct cvy_infer *call, int i) {
    CVY_TRY(cvy_infer_float(call, i, NULL));
    if (call->in[i].shape.n < 1 || cvy_shape_count(&call->in[i].shape) == 0)
        return cvy_infer_fail(call, "%s must have at least one dimension, and none empty",
                              call->op->in_names[i]);
    return CVY_OK;
}

/* shape with its last dimension replaced */
static struct cvy_shape with_last(struct cvy_shape shape, int64_t n) {
    shape.dim[shape.n - 1] = n;
    return shape;
}

static cvy_status forward_infer(struct cvy_infer *call) {
    CVY_TRY(check_rows(call, 0));
    CVY_TRY(cvy_infer_rank(call, 1, 2));
    int64_t n_out = call->in[1].shape.dim[0];
    CVY_TRY(cvy_infer_float(call, 1, &CVY_SHAPE(n_out, last(&call->in[0]))));
    if (cvy_infer_has(call, 2))
        CVY_TRY(cvy_infer_float(call, 2, &CVY_SHAPE(n_out)));
    call->out[0] = cvy_desc_make(call->in[0].dtype, with_last(call->in[0].shape, n_out));
    return CVY_OK;
}

static cvy_status data_infer(struct cvy_infer *call) {
    CVY_TRY(check_rows(call, 0));
    CVY_TRY(cvy_infer_rank(call, 1, 2));
    int64_t n_in = call->in[1].shape.dim[1];
    CVY_TRY(cvy_infer_float(call, 1, &CVY_SHAPE(last(&call->in[0]), n_in)));
    call->out[0] = cvy_desc_make(call->in[0].dtype, with_last(call->in[0].shape, n_in));
    return CVY_OK;
}

static cvy_status weights_infer(struct cvy_infer *call) {
    CVY_TRY(check_rows(call, 0));
    CVY_TRY(check_rows(call, 1));
    struct cvy_shape dy = with_last(call->in[1].shape, last(&call->in[0]));
    CVY_TRY(cvy_infer_float(call, 0, &dy));
    call->out[0] = cvy_desc_make(CVY_F32, CVY_SHAPE(last(&call->in[0]), last(&call->in[1])));
    return CVY_OK;
}

/* One multiply and add per row, input and output feature; dy or x is operand 0, and with it the rows. */
static void forward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    double rows = (double)rows_of(&call->in[0]);
    cvy_cost_fill(call, 2 * rows * (double)cvy_shape_count(&call->in[1].shape), out);
}

static void weights_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    double rows = (double)rows_of(&call->in[0]);
    cvy_cost_fill(call, 2 * rows * (double)cvy_shape_count(&call->out[0].shape), out);
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    const struct cvy_node of = *node; /* the list of nodes moves when it grows */
    const struct cvy_channel_sum_attrs last_axis = {.axis = -1};
    if (want & 1)
        CVY_TRY(cvy_graph_add_grad(g, &of, "linear_backward_data", NULL, (cvy_value[]){gout[0], of.in[1]}, 2,
                                   &gin[0]));
    if (want & 2)
        CVY_TRY(cvy_graph_add_grad(g, &of, "linear_backward_weights", NULL, (cvy_value[]){gout[0], of.in[0]},
                                   2, &gin[1]));
    if (want & 4)
        CVY_TRY(cvy_graph_add_grad(g, &of, "channel_sum", &last_axis, &gout[0], 1, &gin[2]));
    return CVY_OK;
}

/* ---- cases and descriptors ----------------------------------------------------------------------- */

static const struct cvy_case forward_cases[] = {
    {"", "f32[1,1] f32[1,1] f32[1]", 0, NULL},           {"", "f32[3,17] f32[5,17] -", 0, NULL},
    {"", "f32[2,512] f32[1000,512] f32[1000]", 0, NULL}, {"", "f32[2,1,10,10] f32[10,10] f32[10]", 0, NULL},
    {"", "f32[17] f32[3,17] f32[3]", 0, NULL},
};

static const struct cvy_case data_cases[] = {
    {"", "f32[1,1] f32[1,1]", 0, NULL},
    {"", "f32[3,5] f32[5,17]", 0, NULL},
    {"", "f32[2,1000] f32[1000,64]", 0, NULL},
    {"", "f32[2,1,10,7] f32[7,10]", 0, NULL},
};

static const struct cvy_case weights_cases[] = {
    {"", "f32[1,1] f32[1,1]", 0, NULL},
    {"", "f32[3,5] f32[3,17]", 0, NULL},
    {"", "f32[2,1000] f32[2,64]", 0, NULL},
    {"", "f32[2,1,10,7] f32[2,1,10,10]", 0, NULL},
};

const struct cvy_op cvy_op_linear = {
    .name = "linear",
    .help = "y = x weight^T + bias over the last dimension of x",
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

const struct cvy_op cvy_op_linear_backward_data = {
    .name = "linear_backward_data",
    .help = "dx of linear: dy weight",
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"dy", "weight"},
    .out_names = (const char *const[]){"dx"},
    .flags = CVY_OP_PRODUCTS,
    .narrow_in = 1u << 0 | 1u << 1,
    .infer = data_infer,
    .reference = data_reference,
    .cost = forward_cost,
    .cases = data_cases,
    .n_cases = CVY_N(data_cases),
};

const struct cvy_op cvy_op_linear_backward_weights = {
    .name = "linear_backward_weights",
    .help = "dweight of linear: dy^T x, summed over all leading dimensions",
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
