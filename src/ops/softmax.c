/* softmax over the last dimension, and its gradient, which looks at y alone. */
#include "ops/cases.h"
#include "ops/infer.h"

#include <math.h>

/* [rows,classes] */
static int64_t classes_of(const struct cvy_desc *desc) { return desc->shape.dim[desc->shape.n - 1]; }
static int64_t rows_of(const struct cvy_desc *desc) {
    return cvy_shape_count(&desc->shape) / classes_of(desc);
}

static void forward_reference(const struct cvy_reference *call) {
    int64_t n = classes_of(&call->in_desc[0]), rows = rows_of(&call->in_desc[0]);
    for (int64_t r = 0; r < rows; r++) {
        const double *x = call->in[0] + r * n;
        double *y = call->out[0] + r * n, largest = x[0], sum = 0;
        for (int64_t k = 1; k < n; k++)
            largest = x[k] > largest ? x[k] : largest;
        for (int64_t k = 0; k < n; k++)
            sum += y[k] = exp(x[k] - largest);
        for (int64_t k = 0; k < n; k++)
            y[k] /= sum;
    }
}

static void backward_reference(const struct cvy_reference *call) {
    int64_t n = classes_of(&call->in_desc[0]), rows = rows_of(&call->in_desc[0]);
    for (int64_t r = 0; r < rows; r++) {
        const double *dy = call->in[0] + r * n, *y = call->in[1] + r * n;
        double sum = 0;
        for (int64_t k = 0; k < n; k++)
            sum += dy[k] * y[k];
        for (int64_t k = 0; k < n; k++)
            call->out[0][r * n + k] = y[k] * (dy[k] - sum);
    }
}

static cvy_status check(const struct cvy_infer *call) {
    if (call->in[0].shape.n < 1 || cvy_shape_count(&call->in[0].shape) == 0)
        return cvy_infer_fail(call, "it must have a last dimension and not be empty");
    return CVY_OK;
}

static cvy_status forward_infer(struct cvy_infer *call) {
    CVY_TRY(check(call));
    return cvy_infer_unary(call);
}

static cvy_status backward_infer(struct cvy_infer *call) {
    CVY_TRY(check(call));
    return cvy_infer_binary(call);
}

static void cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, 4 * (double)cvy_shape_count(&call->out[0].shape), out);
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    (void)want; /* one input: it is wanted */
    return cvy_graph_add_grad(g, node, "softmax_backward", NULL, (cvy_value[]){gout[0], node->out[0]}, 2,
                              &gin[0]);
}

static const struct cvy_alias in_place[] = {{0, 0}};

static const struct cvy_case forward_cases[] = {
    {"", "f32[1]", 0, NULL},
    {"", "f32[3,17]", 0, NULL},
    {"", "f32[2,1000]", 0, NULL},
    {"", "f32[2,3,5,10]", 0, NULL},
};

/* y (input 1) as softmax makes it: positive and of about 1 in all. */
static void fill_backward(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    if (i == 1)
        cvy_fill_uniform(i, desc, seed, 0, 2 / (double)classes_of(desc), values);
    else
        cvy_fill_normal(i, desc, seed, values);
}

static const struct cvy_case backward_cases[] = {
    {"", "f32[3,17] f32[3,17]", 0, fill_backward},
    {"", "f32[2,1000] f32[2,1000]", 0, fill_backward},
    {"", "f32[2,3,5,10] f32[2,3,5,10]", 0, fill_backward},
};

const struct cvy_op cvy_op_softmax = {
    .name = "softmax",
    .help = "y = exp(x) / sum of exp(x), over the last dimension",
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"x"},
    .out_names = (const char *const[]){"y"},
    .aliases = in_place,
    .n_aliases = CVY_N(in_place),
    .narrow_in = 1u << 0,
    .infer = forward_infer,
    .grad = grad,
    .reference = forward_reference,
    .cost = cost,
    .cases = forward_cases,
    .n_cases = CVY_N(forward_cases),
};

const struct cvy_op cvy_op_softmax_backward = {
    .name = "softmax_backward",
    .help = "dx = y (dy - sum of dy y), over the last dimension",
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"dy", "y"},
    .out_names = (const char *const[]){"dx"},
    .aliases = in_place,
    .n_aliases = CVY_N(in_place),
    .narrow_in = 1u << 0 | 1u << 1,
    .infer = backward_infer,
    .reference = backward_reference,
    .cost = cost,
    .cases = backward_cases,
    .n_cases = CVY_N(backward_cases),
};
