/* mean over all dimensions but the batch, N,… to N, and its gradient. */
#include "ops/dims.h"
#include "ops/infer.h"

static cvy_status forward_infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    const struct cvy_shape *x = &call->in[0].shape;
    if (x->n < 2 || cvy_shape_count(x) == 0)
        return cvy_infer_fail(call, "x must be N,… and not empty");
    call->out[0] = cvy_desc_make(call->in[0].dtype, CVY_SHAPE(x->dim[0]));
    return CVY_OK;
}

static cvy_status backward_infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_rank(call, 0, 1));
    call->out[0] = cvy_desc_make(call->in[0].dtype, cvy_dims_shape(call->attrs, call->in[0].shape.dim[0]));
    if (call->out[0].shape.n < 2)
        return cvy_infer_fail(call, "d1, the first dimension of x behind the batch, is not given");
    return CVY_OK;
}

static void forward_reference(const struct cvy_reference *call) {
    int64_t images = call->in_desc[0].shape.dim[0], each = cvy_shape_count(&call->in_desc[0].shape) / images;
    for (int64_t n = 0; n < images; n++) {
        double sum = 0;
        for (int64_t k = 0; k < each; k++)
            sum += call->in[0][n * each + k];
        call->out[0][n] = sum / (double)each;
    }
}

static void backward_reference(const struct cvy_reference *call) {
    int64_t n = cvy_shape_count(&call->out_desc[0].shape), each = n / call->out_desc[0].shape.dim[0];
    for (int64_t i = 0; i < n; i++)
        call->out[0][i] = call->in[0][i / each] / (double)each;
}

static void forward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, (double)cvy_shape_count(&call->in[0].shape), out);
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    (void)want; /* one input: it is wanted */
    struct cvy_dims_attrs attrs = cvy_dims_of(&cvy_graph_value(g, node->in[0])->desc.shape);
    return cvy_graph_add_grad(g, node, "mean_backward", &attrs, gout, 1, &gin[0]);
}

static const struct cvy_case forward_cases[] = {
    {"", "f32[1,1]", 0, NULL}, {"", "f32[3,17,5,7]", 0, NULL}, {"", "f32[2,1,10,10]", 0, NULL}};

static const struct cvy_case backward_cases[] = {{"d1=1", "f32[1]", 0, NULL},
                                                 {"d1=17 d2=5 d3=7", "f32[3]", 0, NULL},
                                                 {"d1=1 d2=10 d3=10", "f32[2]", 0, NULL}};

const struct cvy_op cvy_op_mean = {
    .name = "mean",
    .help = "y[n] = the mean of x[n,…]",
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"x"},
    .out_names = (const char *const[]){"y"},
    .narrow_in = 1u << 0,
    .infer = forward_infer,
    .grad = grad,
    .reference = forward_reference,
    .cost = forward_cost,
    .cases = forward_cases,
    .n_cases = CVY_N(forward_cases),
};

const struct cvy_op cvy_op_mean_backward = {
    .name = "mean_backward",
    .help = "dx[n,…] = dy[n] / elements of an image; x has the dimensions N,d1,d2,…",
    .attrs_size = sizeof(struct cvy_dims_attrs),
    .attrs = cvy_dims_attr_table,
    .n_attrs = CVY_N_DIMS_ATTRS,
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"dy"},
    .out_names = (const char *const[]){"dx"},
    .narrow_in = 1u << 0,
    .infer = backward_infer,
    .reference = backward_reference,
    .cost = cvy_cost_elementwise,
    .cases = backward_cases,
    .n_cases = CVY_N(backward_cases),
};
