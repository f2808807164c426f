/* mul: of two tensors of one shape; or with a factor for each channel, of each image (squeeze-and-excitation) or of
   all of them (layer scale). mul_backward is the gradient of such factors. */
#include "ops/mul.h"
#include "ops/infer.h"

typedef struct cvy_mul_attrs mul_attrs;

static const struct cvy_attr attr_table[] = {
    {"per_image", CVY_ATTR_BOOL, offsetof(mul_attrs, per_image), 1, 0, 1,
     "each image has its own factors: N,C,1,1; else C,1,1"},
};

/* Of the factors of a tensor N,C,H,W. */
static struct cvy_shape factors(const struct cvy_shape *x, bool per_image) {
    return per_image ? CVY_SHAPE(x->dim[0], x->dim[1], 1, 1) : CVY_SHAPE(x->dim[1], 1, 1);
}

/* Element i of N,C,H,W has factor number … */
static int64_t factor_of(const struct cvy_shape *x, bool per_image, int64_t i) {
    int64_t plane = i / (x->dim[2] * x->dim[3]);
    return per_image ? plane : plane % x->dim[1];
}

static bool has_factors(const struct cvy_shape *x, const struct cvy_shape *b, bool per_image) {
    struct cvy_shape expected = factors(x, per_image);
    return x->n == 4 && cvy_shape_equal(b, &expected);
}

static cvy_status infer(struct cvy_infer *call) {
    const struct cvy_shape *a = &call->in[0].shape, *b = &call->in[1].shape;
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    CVY_TRY(cvy_infer_float(call, 1, NULL));
    if (!cvy_shape_equal(a, b) && !has_factors(a, b, true) && !has_factors(a, b, false))
        return cvy_infer_fail(call, "b must have a's shape, or with a N,C,H,W be N,C,1,1 or C,1,1");
    call->out[0] = call->in[0];
    return CVY_OK;
}

static void reference(const struct cvy_reference *call) {
    const struct cvy_shape *a = &call->in_desc[0].shape, *b = &call->in_desc[1].shape;
    bool is_same = cvy_shape_equal(a, b);
    int64_t n = cvy_shape_count(a);
    for (int64_t i = 0; i < n; i++)
        call->out[0][i] = call->in[0][i] * call->in[1][is_same ? i : factor_of(a, b->n == 4, i)];
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    const struct cvy_shape a = cvy_graph_value(g, node->in[0])->desc.shape,
                           b = cvy_graph_value(g, node->in[1])->desc.shape;
    const mul_attrs attrs = {.per_image = b.n == 4};
    if (want & 1)
        CVY_TRY(cvy_graph_add_grad(g, node, "mul", NULL, (cvy_value[]){gout[0], node->in[1]}, 2, &gin[0]));
    if (!(want & 2))
        return CVY_OK;
    const cvy_value in[] = {gout[0], node->in[0]};
    return cvy_shape_equal(&a, &b) ? cvy_graph_add_grad(g, node, "mul", NULL, in, 2, &gin[1])
                                   : cvy_graph_add_grad(g, node, "mul_backward", &attrs, in, 2, &gin[1]);
}

/* ---- the gradient of the factors ------------------------------------------------------------------- */

static cvy_status backward_infer(struct cvy_infer *call) {
    const mul_attrs *attrs = call->attrs;
    CVY_TRY(cvy_infer_rank(call, 0, 4));
    CVY_TRY(cvy_infer_float(call, 1, &call->in[0].shape));
    /* a factor for all images is a parameter, or leads to one: float32 */
    call->out[0] = cvy_desc_make(attrs->per_image ? call->in[0].dtype : CVY_F32,
                                 factors(&call->in[0].shape, attrs->per_image));
    return CVY_OK;
}

static void backward_reference(const struct cvy_reference *call) {
    const struct cvy_shape *x = &call->in_desc[0].shape;
    const mul_attrs *attrs = call->attrs;
    int64_t n = cvy_shape_count(x), n_factors = cvy_shape_count(&call->out_desc[0].shape);
    for (int64_t k = 0; k < n_factors; k++)
        call->out[0][k] = 0;
    for (int64_t i = 0; i < n; i++)
        call->out[0][factor_of(x, attrs->per_image, i)] += call->in[0][i] * call->in[1][i];
}

static void backward_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, 2 * (double)cvy_shape_count(&call->in[0].shape), out);
}

static const struct cvy_case cases[] = {
    {"", "f32[9] f32[9]", 0, NULL},
    {"", "f32[2,17,5,7] f32[2,17,5,7]", 0, NULL},
    {"", "f32[2,64,4,4] f32[2,64,4,4]", 0, NULL},
    {"", "f32[2,17,5,7] f32[2,17,1,1]", 0, NULL},
    {"", "f32[3,64,4,4] f32[3,64,1,1]", 0, NULL},
    {"", "f32[1,1,1,1] f32[1,1,1,1]", 0, NULL},
    {"", "f32[2,17,5,7] f32[17,1,1]", 0, NULL},
    {"", "f32[3,64,4,4] f32[64,1,1]", 0, NULL},
};

static const struct cvy_case backward_cases[] = {
    {"", "f32[2,17,5,7] f32[2,17,5,7]", 0, NULL},
    {"", "f32[3,64,4,4] f32[3,64,4,4]", 0, NULL},
    {"", "f32[1,3,40,41] f32[1,3,40,41]", 0, NULL},
    {"per_image=false", "f32[2,17,5,7] f32[2,17,5,7]", 0, NULL},
    {"per_image=false", "f32[3,64,4,4] f32[3,64,4,4]", 0, NULL},
};

const struct cvy_op cvy_op_mul = {
    .name = "mul",
    .help = "y = a b, b of a's shape, or a factor for each channel: N,C,1,1 or C,1,1",
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"a", "b"},
    .out_names = (const char *const[]){"y"},
    .flags = CVY_OP_FOLLOWS,
    .aliases = (const struct cvy_alias[]){{0, 0}},
    .n_aliases = 1,
    .narrow_in = 1u << 0 | 1u << 1,
    .infer = infer,
    .grad = grad,
    .reference = reference,
    .cost = cvy_cost_elementwise,
    .cases = cases,
    .n_cases = CVY_N(cases),
};

const struct cvy_op cvy_op_mul_backward = {
    .name = "mul_backward",
    .help = "db[n,c] or db[c] = the sum of dy a over what has that factor",
    .attrs_size = sizeof(mul_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"dy", "a"},
    .out_names = (const char *const[]){"db"},
    .narrow_in = 1u << 0 | 1u << 1,
    .infer = backward_infer,
    .reference = backward_reference,
    .cost = backward_cost,
    .cases = backward_cases,
    .n_cases = CVY_N(backward_cases),
};
