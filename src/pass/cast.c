/* cast: mixed precision (--amp). Operators that say so compute in the low precision, or in that of what they read;
   everything else in float32: losses, softmax, statistics, what the host reads. Casts stand where two differ, one for
   each value and type. Parameters stay float32: the cast of one is made again after its update (pass/choose.c), and
   its gradient is float32. */
#include "ops/cast.h"
#include "pass/pass.h"

#include <stdlib.h>

struct caster {
    const struct cvy_graph *g;
    cvy_dtype low;
    struct cvy_graph *to;
    cvy_value *map;
    cvy_value *casts[2]; /* per value of g, in float32 and in the low precision: its cast, or CVY_NONE */
};

static cvy_dtype type_of(const struct caster *c, cvy_value v) {
    return cvy_graph_value(c->to, c->map[v])->desc.dtype;
}

/* Labels, masks and doubles stay what they are. */
static bool is_castable(const struct caster *c, cvy_value v) {
    return v != CVY_NONE && (type_of(c, v) == CVY_F32 || type_of(c, v) == c->low);
}

/* Value v of g in `type`. `reader` gives layer and stage: the cast of a weight goes where the layer goes. */
static cvy_status in_type(struct caster *c, const struct cvy_node *reader, cvy_value v, cvy_dtype type,
                          cvy_value *out) {
    cvy_value *cast = &c->casts[type == c->low][v];
    *out = type_of(c, v) == type ? c->map[v] : *cast;
    if (*out != CVY_NONE)
        return CVY_OK;
    const struct cvy_cast_attrs attrs = cvy_cast_to(type);
    char *name = NULL;
    CVY_TRY(cvy_pool_printf(&c->to->pool, &name, "%s.%s", cvy_graph_value(c->to, c->map[v])->name,
                            cvy_dtype_name(type)));
    struct cvy_node_spec spec = {.op = cvy_op_find("cast"),
                                 .name = name,
                                 .attrs = &attrs,
                                 .in = &c->map[v],
                                 .n_in = 1,
                                 .phase = CVY_PHASE_FORWARD,
                                 .stage = reader->stage,
                                 .id = reader->id};
    CVY_TRY(cvy_graph_add_node(c->to, &spec, cast));
    c->to->nodes.data[c->to->nodes.n - 1].bucket = reader->bucket;
    *out = *cast;
    return CVY_OK;
}

/* Is input k one that may come in the low precision? */
static bool is_narrow(const struct caster *c, const struct cvy_node *node, int k) {
    return (node->op->narrow_in >> k & 1) && is_castable(c, node->in[k]);
}

/* Does the operator compute in the low precision here? One that follows does when all that it reads is there. */
static bool is_low(const struct caster *c, const struct cvy_node *node) {
    bool follows = (node->op->flags & CVY_OP_FOLLOWS) != 0;
    for (int k = 0; k < node->n_in && follows; k++)
        follows = !is_narrow(c, node, k) || type_of(c, node->in[k]) == c->low;
    return follows || (node->op->flags & CVY_OP_LOW) != 0;
}

static cvy_status copy_node(struct caster *c, const struct cvy_node *node) {
    cvy_value in[32];
    if (node->phase != CVY_PHASE_FORWARD)
        return cvy_graph_copy_node(c->to, c->g, node, c->map);
    bool is_node_low = is_low(c, node);
    for (int k = 0; k < node->n_in; k++) {
        bool is_full = !is_node_low || !is_narrow(c, node, k);
        in[k] = node->in[k] == CVY_NONE ? CVY_NONE : c->map[node->in[k]];
        if (is_castable(c, node->in[k]))
            CVY_TRY(in_type(c, node, node->in[k], is_full ? CVY_F32 : c->low, &in[k]));
    }
    struct cvy_node_spec spec = {.op = node->op,
                                 .name = node->name,
                                 .attrs = node->attrs,
                                 .in = in,
                                 .n_in = node->n_in,
                                 .phase = node->phase,
                                 .stage = node->stage,
                                 .id = node->id};
    cvy_value made[CVY_MAX_OUT];
    CVY_TRY(cvy_graph_add_node(c->to, &spec, made));
    c->to->nodes.data[c->to->nodes.n - 1].bucket = node->bucket;
    for (int o = 0; o < node->n_out; o++)
        c->map[node->out[o]] = made[o];
    return CVY_OK;
}

/* What the host reads is float32. */
static cvy_status copy_outputs(struct caster *c) {
    for (size_t i = 0; i < c->g->outputs.n; i++) {
        const struct cvy_named_output *output = &c->g->outputs.data[i];
        int32_t maker = cvy_graph_value(c->g, output->value)->node;
        cvy_value v = c->map[output->value];
        if (maker >= 0 && is_castable(c, output->value))
            CVY_TRY(in_type(c, &c->g->nodes.data[maker], output->value, CVY_F32, &v));
        CVY_TRY(cvy_graph_set_output(c->to, output->name, v));
    }
    return CVY_OK;
}

cvy_status cvy_pass_cast(const struct cvy_graph *g, cvy_dtype low, struct cvy_graph **out) {
    struct caster c = {.g = g, .low = low};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_graph_copy_roots(g, &c.to, &c.map));
    for (int k = 0; k < 2; k++) {
        CVY_TRY_OUT(CVY_ALLOC(c.casts[k], g->values.n));
        for (size_t v = 0; v < g->values.n; v++)
            c.casts[k][v] = CVY_NONE;
    }
    for (size_t i = 0; i < g->nodes.n; i++)
        CVY_TRY_OUT(copy_node(&c, &g->nodes.data[i]));
    CVY_TRY_OUT(copy_outputs(&c));
    *out = c.to;
    c.to = NULL;
out:
    cvy_graph_free(c.to);
    free(c.map);
    free(c.casts[0]);
    free(c.casts[1]);
    return status;
}
