/* dropout and its gradient. The mask is a function of (seed, step, id, position in the global batch), drawn
   again in the backward pass: nothing is saved, and no strategy can change it (see dropout.h). */
#include "ops/dropout.h"
#include "base/rng.h"
#include "ops/cases.h"
#include "ops/infer.h"

typedef struct cvy_dropout_attrs dropout_attrs;

static const struct cvy_attr attr_table[] = {
    {"p", CVY_ATTR_FLOAT, offsetof(dropout_attrs, p), 0.5, 0, 1, "probability of dropping an element"},
    {"id", CVY_ATTR_INT, offsetof(dropout_attrs, id), 0, 0, UINT32_MAX,
     "keys the numbers: the operator's id"},
    {"training", CVY_ATTR_BOOL, offsetof(dropout_attrs, training), 1, 0, 1, "false: the identity"},
    {"per_image", CVY_ATTR_BOOL, offsetof(dropout_attrs, per_image), 0, 0, 1,
     "an image is dropped or kept as a whole (stochastic depth)"},
};

static const struct cvy_shape rng_shape = {.n = 1, .dim = {3}}; /* seed, step, first image of the shard */

static cvy_status infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    if (call->in[0].shape.n < 1 || cvy_shape_count(&call->in[0].shape) == 0)
        return cvy_infer_fail(call, "%s must be N,… and not empty", call->op->in_names[0]);
    CVY_TRY(cvy_infer_typed(call, 1, CVY_I64, &rng_shape));
    call->out[0] = call->in[0];
    return CVY_OK;
}

/* dx = mask dy / (1 - p) is the forward's own formula, y = mask x / (1 - p). */
static void reference(const struct cvy_reference *call) {
    const dropout_attrs *a = call->attrs;
    const struct cvy_shape *x = &call->in_desc[0].shape;
    int64_t n = cvy_shape_count(x), each = n / x->dim[0]; /* elements of an image */
    uint64_t first = (uint64_t)call->in[1][2] * (uint64_t)(a->per_image ? 1 : each); /* of the global batch */
    double p = a->training ? a->p : 0, scale = p < 1 ? 1 / (1 - p) : 0;
    struct cvy_rng rng;
    cvy_rng_init(&rng, (uint64_t)call->in[1][0], CVY_RNG_DROPOUT, (uint64_t)call->in[1][1], (uint32_t)a->id);
    for (int64_t i = 0; i < n; i++) {
        uint64_t element = first + (uint64_t)(a->per_image ? i / each : i);
        uint32_t block[4];
        cvy_rng_at(&rng, element / 4, block);
        bool is_dropped = (double)block[element % 4] < p * 0x1p32;
        call->out[0][i] = is_dropped ? 0 : call->in[0][i] * scale;
    }
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    (void)want; /* of x alone: rng is not differentiable */
    return cvy_graph_add_grad(g, node, "dropout_backward", node->attrs, (cvy_value[]){gout[0], node->in[1]},
                              2, &gin[0]);
}

static const struct cvy_alias in_place[] = {{0, 0}};

static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    if (i == 1)
        cvy_fill_below(i, desc, seed, 1000, values);
    else
        cvy_fill_normal(i, desc, seed, values);
}

static const struct cvy_case cases[] = {
    {"", "f32[1,1] i64[3]", 0, fill},
    {"p=0.3 id=7", "f32[3,17] i64[3]", 0, fill}, /* shards that begin within a block of four */
    {"p=0.1 id=8", "f32[2,17,5,7] i64[3]", 0, fill},
    {"p=0", "f32[3,17] i64[3]", 0, fill},
    {"p=1", "f32[3,17] i64[3]", 0, fill},
    {"training=false", "f32[2,64,4,4] i64[3]", 0, fill},
    {"p=0.4 id=9 per_image=true", "f32[9,17,5,7] i64[3]", 0, fill},
    {"p=0.4 id=9 per_image=true training=false", "f32[2,17] i64[3]", 0, fill},
};

const struct cvy_op cvy_op_dropout = {
    .name = "dropout",
    .help = "y = x / (1 - p) with probability 1 - p, else 0",
    .attrs_size = sizeof(dropout_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"x", "rng"},
    .out_names = (const char *const[]){"y"},
    .flags = CVY_OP_RANDOM | CVY_OP_FOLLOWS,
    .aliases = in_place,
    .n_aliases = CVY_N(in_place),
    .narrow_in = 1u << 0,
    .infer = infer,
    .grad = grad,
    .reference = reference,
    .cost = cvy_cost_elementwise,
    .cases = cases,
    .n_cases = CVY_N(cases),
};

const struct cvy_op cvy_op_dropout_backward = {
    .name = "dropout_backward",
    .help = "dx = dy / (1 - p) where dropout kept x, else 0",
    .attrs_size = sizeof(dropout_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"dy", "rng"},
    .out_names = (const char *const[]){"dx"},
    .flags = CVY_OP_RANDOM,
    .aliases = in_place,
    .n_aliases = CVY_N(in_place),
    .narrow_in = 1u << 0,
    .infer = infer,
    .reference = reference,
    .cost = cvy_cost_elementwise,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
