/* Copies of graphs: whole ones for another shard size, and the pieces that passes build a new graph from.
   Shapes are never copied but inferred again, so a copy whose roots changed is right or an error. */
#include "graph/graph.h"

#include <stdlib.h>

static void copy_counters(struct cvy_graph *to, const struct cvy_graph *g) {
    to->n_buckets = g->n_buckets;
    to->stage = g->stage;
    to->next_id = g->next_id;
    to->batch = g->batch;
}

static cvy_status copy_root(struct cvy_graph *to, const struct cvy_value_info *from, cvy_value *out) {
    struct cvy_desc desc = from->desc;
    if (from->has_batch)
        desc.shape.dim[0] = to->batch;
    CVY_TRY(cvy_graph_add_value(to, from->name, &desc, from->kind, out));
    struct cvy_value_info *copy = cvy_graph_value(to, *out);
    copy->init = from->init;
    copy->layout = from->layout;
    copy->has_batch = from->has_batch;
    copy->is_frozen = from->is_frozen;
    copy->is_auxiliary = from->is_auxiliary;
    return CVY_OK;
}

cvy_status cvy_graph_copy_roots(const struct cvy_graph *g, struct cvy_graph **out, cvy_value **out_map) {
    struct cvy_graph *to = NULL;
    cvy_value *map = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_graph_new(&to));
    CVY_TRY_OUT(CVY_ALLOC(map, g->values.n));
    copy_counters(to, g);
    for (size_t v = 0; v < g->values.n; v++) {
        map[v] = CVY_NONE;
        if (g->values.data[v].kind != CVY_VALUE_RESULT)
            CVY_TRY_OUT(copy_root(to, &g->values.data[v], &map[v]));
    }
    *out = to;
    *out_map = map;
    return CVY_OK;
out:
    cvy_graph_free(to);
    free(map);
    return status;
}

cvy_status cvy_graph_copy_node(struct cvy_graph *to, const struct cvy_graph *g, const struct cvy_node *n,
                               cvy_value *map) {
    cvy_value *in = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(CVY_ALLOC(in, (size_t)n->n_in));
    for (int i = 0; i < n->n_in; i++)
        in[i] = n->in[i] == CVY_NONE ? CVY_NONE : map[n->in[i]];
    struct cvy_node_spec spec = {.op = n->op,
                                 .name = n->name,
                                 .attrs = n->attrs,
                                 .in = in,
                                 .n_in = n->n_in,
                                 .phase = n->phase,
                                 .stage = n->stage,
                                 .id = n->id};
    CVY_TRY_OUT(cvy_graph_add_node(to, &spec, NULL));
    struct cvy_node *copy = &to->nodes.data[to->nodes.n - 1];
    copy->bucket = n->bucket;
    copy->algorithm = n->algorithm;
    for (int o = 0; o < n->n_out; o++) {
        map[n->out[o]] = copy->out[o];
        cvy_graph_value(to, copy->out[o])->layout = cvy_graph_value(g, n->out[o])->layout;
    }
out:
    free(in);
    return status;
}

cvy_status cvy_graph_copy_tables(struct cvy_graph *to, const struct cvy_graph *g, const cvy_value *map) {
    for (size_t i = 0; i < g->reducibles.n; i++) {
        struct cvy_reducible reducible = g->reducibles.data[i];
        reducible.value = map[reducible.value];
        reducible.target = reducible.target == CVY_NONE ? CVY_NONE : map[reducible.target];
        CVY_TRY(cvy_vec_push(&to->reducibles, reducible));
    }
    for (size_t i = 0; i < g->outputs.n; i++)
        CVY_TRY(cvy_graph_set_output(to, g->outputs.data[i].name, map[g->outputs.data[i].value]));
    return CVY_OK;
}

/* Roots v.. up to `end`, which has not been made yet. */
static cvy_status copy_roots_before(struct cvy_graph *to, const struct cvy_graph *g, cvy_value end,
                                    cvy_value *map) {
    for (cvy_value v = (cvy_value)to->values.n; v < end; v++)
        CVY_TRY(copy_root(to, &g->values.data[v], &map[v]));
    return CVY_OK;
}

/* A layout may hold the shape that it was made for. */
static void drop_batch_layouts(struct cvy_graph *g) {
    for (size_t v = 0; v < g->values.n; v++) {
        enum cvy_value_kind kind = g->values.data[v].kind;
        if (kind == CVY_VALUE_INPUT || kind == CVY_VALUE_RESULT)
            g->values.data[v].layout = NULL;
    }
}

cvy_status cvy_graph_rebatch(const struct cvy_graph *g, int64_t batch, struct cvy_graph **out) {
    struct cvy_graph *to = NULL;
    cvy_value *map = NULL;
    cvy_status status = CVY_OK;
    if (batch < 1)
        return CVY_FAIL(CVY_ERR_USAGE, "a shard has at least one image, not %lld", (long long)batch);
    CVY_TRY_OUT(cvy_graph_new(&to));
    CVY_TRY_OUT(CVY_ALLOC(map, g->values.n));
    copy_counters(to, g);
    to->batch = batch;
    for (size_t n = 0; n < g->nodes.n; n++) {
        const struct cvy_node *node = &g->nodes.data[n];
        if (node->n_out > 0)
            CVY_TRY_OUT(copy_roots_before(to, g, node->out[0], map));
        CVY_TRY_OUT(cvy_graph_copy_node(to, g, node, map));
    }
    CVY_TRY_OUT(copy_roots_before(to, g, (cvy_value)g->values.n, map));
    CVY_TRY_OUT(cvy_graph_copy_tables(to, g, map));
    drop_batch_layouts(to);
    *out = to;
    to = NULL;
out:
    cvy_graph_free(to);
    free(map);
    return status;
}
