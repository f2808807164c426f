/* relu and its gradient, which looks at y alone so that x need not be kept. */
#include "ops/cases.h"
#include "ops/infer.h"

#include <math.h>

static void forward_reference(const struct cvy_reference *call) {
    int64_t n = cvy_shape_count(&call->in_desc[0].shape);
    for (int64_t i = 0; i < n; i++) /* so written, NaN stays NaN */
        call->out[0][i] = call->in[0][i] <= 0 ? 0 : call->in[0][i];
}

static void backward_reference(const struct cvy_reference *call) {
    int64_t n = cvy_shape_count(&call->in_desc[0].shape);
    for (int64_t i = 0; i < n; i++)
        call->out[0][i] = call->in[1][i] > 0 ? call->in[0][i] : 0;
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    (void)want; /* one input: it is wanted */
    return cvy_graph_add_grad(g, node, "relu_backward", NULL, (cvy_value[]){gout[0], node->out[0]}, 2,
                              &gin[0]);
}

static const struct cvy_alias in_place[] = {{0, 0}};

/* Away from the kink at 0, where there is no derivative to compare with. */
static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    cvy_fill_normal(i, desc, seed, values);
    for (int64_t k = 0; k < cvy_shape_count(&desc->shape); k++)
        values[k] += copysign(0.01, values[k]);
}

static const struct cvy_case forward_cases[] = {
    {"", "f32[1]", 0, fill},
    {"", "f32[3,17]", 0, fill},
    {"", "f32[2,17,5,7]", 0, fill},
    {"", "f32[2,64,4,4]", 0, fill},
};

static const struct cvy_case backward_cases[] = {
    {"", "f32[1] f32[1]", 0, NULL},
    {"", "f32[3,17] f32[3,17]", 0, NULL},
    {"", "f32[2,17,5,7] f32[2,17,5,7]", 0, NULL},
    {"", "f32[2,64,4,4] f32[2,64,4,4]", 0, NULL},
};

const struct cvy_op cvy_op_relu = {
    .name = "relu",
    .help = "y = max(x, 0)",
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"x"},
    .out_names = (const char *const[]){"y"},
    .flags = CVY_OP_FOLLOWS,
    .aliases = in_place,
    .n_aliases = CVY_N(in_place),
    .narrow_in = 1u << 0,
    .infer = cvy_infer_unary,
    .grad = grad,
    .reference = forward_reference,
    .cost = cvy_cost_elementwise,
    .cases = forward_cases,
    .n_cases = CVY_N(forward_cases),
};

const struct cvy_op cvy_op_relu_backward = {
    .name = "relu_backward",
    .help = "dx = dy where y > 0, else 0",
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"dy", "y"},
    .out_names = (const char *const[]){"dx"},
    .aliases = in_place,
    .n_aliases = CVY_N(in_place),
    .narrow_in = 1u << 0 | 1u << 1,
    .infer = cvy_infer_binary,
    .reference = backward_reference,
    .cost = cvy_cost_elementwise,
    .cases = backward_cases,
    .n_cases = CVY_N(backward_cases),
};
