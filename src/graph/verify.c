/* The graph's invariants, checked after every pass: the first broken one is named. A graph from the text form
   or a pass that verifies can be trusted by everything downstream. */
#include "graph/graph.h"

#include <stdlib.h>

#define BROKEN(...) CVY_FAIL(CVY_ERR_FAILED, "broken graph: " __VA_ARGS__)

static bool is_value(const struct cvy_graph *g, cvy_value v) { return v >= 0 && (size_t)v < g->values.n; }

static cvy_status verify_value(const struct cvy_graph *g, cvy_value v) {
    const struct cvy_value_info *info = cvy_graph_value(g, v);
    CVY_TRY(cvy_desc_check(&info->desc));
    if (cvy_graph_find(g, info->name) != v)
        return BROKEN("the name %s does not lead to its value", info->name);
    if (info->kind != CVY_VALUE_RESULT)
        return info->node == -1 ? CVY_OK : BROKEN("%s is a root but has a producer", info->name);
    if (info->node < 0 || (size_t)info->node >= g->nodes.n)
        return BROKEN("%s is a result without a producer", info->name);
    const struct cvy_node *node = &g->nodes.data[info->node];
    if (info->output < 0 || info->output >= node->n_out || node->out[info->output] != v)
        return BROKEN("%s is not what its producer %s makes", info->name, node->name);
    return CVY_OK;
}

static cvy_status verify_batch(const struct cvy_graph *g, const struct cvy_value_info *info) {
    if (!info->has_batch)
        return CVY_OK;
    if (info->kind != CVY_VALUE_INPUT || info->desc.shape.n < 1 || info->desc.shape.dim[0] != g->batch)
        return BROKEN("%s should be an input with %lld images", info->name, (long long)g->batch);
    return CVY_OK;
}

/* Phases run in their order, but what REFRESH makes stays until the next update, for all phases to read. */
static bool is_readable(enum cvy_phase producer, enum cvy_phase reader) {
    return producer == CVY_PHASE_REFRESH || producer <= reader;
}

/* Operands exist, are older, come from no later phase, and lie in memory that still holds them. */
static cvy_status verify_operands(const struct cvy_graph *g, size_t n, const cvy_value *overwritten_by) {
    const struct cvy_node *node = &g->nodes.data[n];
    for (int i = 0; i < node->n_in; i++) {
        if (node->in[i] == CVY_NONE)
            continue;
        if (!is_value(g, node->in[i]))
            return BROKEN("%s reads a value that does not exist", node->name);
        const struct cvy_value_info *in = cvy_graph_value(g, node->in[i]);
        if (in->node >= (int32_t)n)
            return BROKEN("%s reads %s before it is made", node->name, in->name);
        if (in->node >= 0 && !is_readable(g->nodes.data[in->node].phase, node->phase))
            return BROKEN("%s reads %s, which is made in a later phase", node->name, in->name);
        if (overwritten_by[node->in[i]] != CVY_NONE)
            return BROKEN("%s reads %s, whose memory holds %s by then", node->name, in->name,
                          cvy_graph_value(g, overwritten_by[node->in[i]])->name);
    }
    for (int o = 0; o < node->n_out; o++) {
        if (!is_value(g, node->out[o]) || node->out[o] != node->out[0] + o)
            return BROKEN("the outputs of %s are not consecutive values", node->name);
        if (cvy_graph_value(g, node->out[o])->node != (int32_t)n)
            return BROKEN("output %d of %s belongs to another node", o, node->name);
    }
    return CVY_OK;
}

static cvy_status verify_shapes(const struct cvy_graph *g, const struct cvy_node *node) {
    struct cvy_desc *desc = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(CVY_ALLOC(desc, (size_t)node->n_out));
    CVY_TRY_OUT(cvy_graph_infer(g, node, desc));
    for (int o = 0; o < node->n_out; o++) {
        const struct cvy_value_info *out = cvy_graph_value(g, node->out[o]);
        if (!cvy_desc_equal(&desc[o], &out->desc)) {
            status = BROKEN("%s has not the shape that %s makes", out->name, node->op->name);
            goto out;
        }
    }
out:
    free(desc);
    return status;
}

/* An update's outputs replace what their inputs held. */
static void note_overwritten(const struct cvy_node *node, cvy_value *overwritten_by) {
    for (int o = 0; o < node->n_out && node->op->flags & CVY_OP_UPDATE; o++) {
        int i = cvy_op_aliased_input(node->op, o);
        if (i >= 0 && node->in[i] != CVY_NONE)
            overwritten_by[node->in[i]] = node->out[o];
    }
}

static cvy_status verify_nodes(const struct cvy_graph *g) {
    cvy_value *overwritten_by = NULL; /* per value */
    cvy_status status = CVY_OK;
    CVY_TRY(CVY_ALLOC(overwritten_by, g->values.n));
    for (size_t v = 0; v < g->values.n; v++)
        overwritten_by[v] = CVY_NONE;
    cvy_value newest = -1;
    for (size_t n = 0; n < g->nodes.n; n++) {
        const struct cvy_node *node = &g->nodes.data[n];
        CVY_TRY_OUT(verify_operands(g, n, overwritten_by));
        if (node->bucket < -1 || node->bucket >= g->n_buckets) {
            status = BROKEN("%s waits for bucket %d of %d", node->name, node->bucket, g->n_buckets);
            goto out;
        }
        if (node->n_out > 0 && node->out[0] <= newest) {
            status = BROKEN("the outputs of %s are older than those of the node before it", node->name);
            goto out;
        }
        newest = node->n_out > 0 ? node->out[node->n_out - 1] : newest;
        CVY_TRY_OUT(cvy_attrs_check(node->op, node->attrs));
        CVY_TRY_OUT(verify_shapes(g, node));
        note_overwritten(node, overwritten_by);
    }
out:
    free(overwritten_by);
    return status;
}

static cvy_status verify_reducible(const struct cvy_graph *g, const struct cvy_reducible *r) {
    if (!is_value(g, r->value))
        return BROKEN("a sum over shards takes a value that does not exist");
    const struct cvy_value_info *value = cvy_graph_value(g, r->value);
    if (value->kind != CVY_VALUE_RESULT || g->nodes.data[value->node].phase > CVY_PHASE_BACKWARD)
        return BROKEN("%s is summed over shards but not made in a shard", value->name);
    if (value->desc.dtype != CVY_F32)
        return BROKEN("%s is summed over shards but not f32", value->name);
    if (r->bucket < -1 || r->bucket >= g->n_buckets)
        return BROKEN("%s lies in bucket %d of %d", value->name, r->bucket, g->n_buckets);
    bool needs_target = r->kind == CVY_REDUCE_GRADIENT || r->kind == CVY_REDUCE_STATISTIC;
    if (needs_target != is_value(g, r->target))
        return BROKEN("%s is summed over shards for %s target", value->name,
                      needs_target ? "no" : "a needless");
    if (r->kind == CVY_REDUCE_GRADIENT &&
        (cvy_graph_value(g, r->target)->kind != CVY_VALUE_PARAM ||
         !cvy_shape_equal(&cvy_graph_value(g, r->target)->desc.shape, &value->desc.shape)))
        return BROKEN("%s is not shaped as a gradient of %s", value->name,
                      cvy_graph_value(g, r->target)->name);
    return CVY_OK;
}

cvy_status cvy_graph_verify(const struct cvy_graph *g) {
    if (g->error.code != CVY_OK)
        return cvy_error_restore(&g->error);
    for (size_t v = 0; v < g->values.n; v++) {
        CVY_TRY(verify_value(g, (cvy_value)v));
        CVY_TRY(verify_batch(g, &g->values.data[v]));
    }
    CVY_TRY(verify_nodes(g));
    for (size_t i = 0; i < g->reducibles.n; i++)
        CVY_TRY(verify_reducible(g, &g->reducibles.data[i]));
    for (size_t i = 0; i < g->outputs.n; i++) {
        if (!is_value(g, g->outputs.data[i].value))
            return BROKEN("output %s is no value", g->outputs.data[i].name);
    }
    return CVY_OK;
}
