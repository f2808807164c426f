/* flatten, N,C,H,W to N,(C H W), and unflatten, its gradient. Both are views: the
   same bytes in plain layout. */
#include "ops/dims.h"
#include "ops/infer.h"

#include <string.h>

static cvy_status flatten_infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    const struct cvy_shape *x = &call->in[0].shape;
    if (x->n < 2 || cvy_shape_count(x) == 0)
        return cvy_infer_fail(call, "x must be N,… and not empty");
    call->out[0] = cvy_desc_make(call->in[0].dtype, CVY_SHAPE(x->dim[0], cvy_shape_count(x) / x->dim[0]));
    return CVY_OK;
}

static cvy_status unflatten_infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    const struct cvy_shape *x = &call->in[0].shape;
    struct cvy_shape y = cvy_dims_shape(call->attrs, x->n > 0 ? x->dim[0] : 0);
    if (x->n == 0 || cvy_shape_count(x) != cvy_shape_count(&y))
        return cvy_infer_fail(call, "the dimensions d1, d2, … do not make up its elements");
    call->out[0] = cvy_desc_make(call->in[0].dtype, y);
    return CVY_OK;
}

static void reference(const struct cvy_reference *call) {
    memcpy(call->out[0], call->in[0], (size_t)cvy_shape_count(&call->in_desc[0].shape) * sizeof(double));
}

static void cost(const struct cvy_infer *call, struct cvy_cost *out) {
    (void)call;
    *out = (struct cvy_cost){0}; /* no kernel runs */
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    (void)want; /* one input: it is wanted */
    struct cvy_dims_attrs attrs = cvy_dims_of(&cvy_graph_value(g, node->in[0])->desc.shape);
    return cvy_graph_add_grad(g, node, "unflatten", &attrs, gout, 1, &gin[0]);
}

static const struct cvy_alias in_place[] = {{0, 0}};

static const struct cvy_case flatten_cases[] = {
    {"", "f32[1,1]", 0, NULL}, {"", "f32[3,17,5,7]", 0, NULL}, {"", "f32[2,64,1,1]", 0, NULL}};

static const struct cvy_case unflatten_cases[] = {{"d1=1", "f32[1,1]", 0, NULL},
                                                  {"d1=17 d2=5 d3=7", "f32[3,595]", 0, NULL},
                                                  {"d1=64 d2=1 d3=1", "f32[2,64]", 0, NULL}};

const struct cvy_op cvy_op_flatten = {
    .name = "flatten",
    .help = "N,C,H,W to N,(C H W)",
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"x"},
    .out_names = (const char *const[]){"y"},
    .flags = CVY_OP_VIEW | CVY_OP_FOLLOWS,
    .aliases = in_place,
    .n_aliases = CVY_N(in_place),
    .narrow_in = 1u << 0,
    .infer = flatten_infer,
    .grad = grad,
    .reference = reference,
    .cost = cost,
    .cases = flatten_cases,
    .n_cases = CVY_N(flatten_cases),
};

const struct cvy_op cvy_op_unflatten = {
    .name = "unflatten",
    .help = "N,… to N,d1,d2,…: undoes flatten",
    .attrs_size = sizeof(struct cvy_dims_attrs),
    .attrs = cvy_dims_attr_table,
    .n_attrs = CVY_N_DIMS_ATTRS,
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"x"},
    .out_names = (const char *const[]){"y"},
    .flags = CVY_OP_VIEW,
    .aliases = in_place,
    .n_aliases = CVY_N(in_place),
    .narrow_in = 1u << 0,
    .infer = unflatten_infer,
    .reference = reference,
    .cost = cost,
    .cases = unflatten_cases,
    .n_cases = CVY_N(unflatten_cases),
};
