/* The part of the public builder that knows no operator: graphs, inputs, outputs, stages, and any operator by
   its name. Errors stick: the first one is kept, and every later call does nothing. */
#include "graph/graph.h"

#include <stdlib.h>

/* Keeps a builder call's error. The value to return: CVY_NONE after any error. */
static cvy_value settle(cvy_graph *g, cvy_status status, cvy_value v) {
    if (status == CVY_OK)
        return v;
    cvy_error_save(&g->error, status);
    return CVY_NONE;
}

cvy_status cvy_graph_status(const cvy_graph *g) {
    return g->error.code == CVY_OK ? CVY_OK : cvy_error_restore(&g->error);
}

cvy_value cvy_input(cvy_graph *g, const char *name, int64_t channels, int64_t height, int64_t width) {
    if (g->error.code != CVY_OK)
        return CVY_NONE;
    struct cvy_desc desc = {CVY_F32, CVY_SHAPE(g->batch, channels, height, width)};
    cvy_value v = CVY_NONE;
    if (channels < 1 || height < 1 || width < 1)
        return settle(
            g, CVY_FAIL(CVY_ERR_USAGE, "input \"%s\" needs channels, height and width of at least 1", name),
            v);
    cvy_status status = cvy_graph_host_input(g, name, &desc, true, &v);
    return settle(g, status, v);
}

cvy_value cvy_labels(cvy_graph *g) {
    if (g->error.code != CVY_OK)
        return CVY_NONE;
    struct cvy_desc desc = {CVY_I64, CVY_SHAPE(g->batch)};
    cvy_value v = CVY_NONE;
    cvy_status status = cvy_graph_host_input(g, "labels", &desc, true, &v);
    return settle(g, status, v);
}

void cvy_output(cvy_graph *g, const char *name, cvy_value value) {
    if (g->error.code == CVY_OK)
        settle(g, cvy_graph_set_output(g, name, value), value);
}

void cvy_stage(cvy_graph *g, int stage) {
    if (g->error.code != CVY_OK)
        return;
    if (stage < 0)
        settle(g, CVY_FAIL(CVY_ERR_USAGE, "stages count from 0; %d is none", stage), CVY_NONE);
    else
        g->stage = stage;
}

static cvy_status find_op(const char *name, const struct cvy_op **out) {
    *out = cvy_op_find(name);
    if (*out)
        return CVY_OK;
    size_t n;
    const struct cvy_op *const *table = cvy_op_table(&n);
    const char **names = NULL;
    CVY_TRY(CVY_ALLOC(names, n));
    for (size_t i = 0; i < n; i++)
        names[i] = table[i]->name;
    const char *nearest = cvy_nearest(name, names, n);
    free(names);
    if (nearest)
        return CVY_FAIL(CVY_ERR_USAGE, "there is no operator \"%s\"; did you mean \"%s\"?", name, nearest);
    return CVY_FAIL(CVY_ERR_USAGE, "there is no operator \"%s\"; `convoy check` lists them", name);
}

static cvy_status apply(cvy_graph *g, const char *op_name, struct cvy_node_spec *spec, const char *attributes,
                        cvy_value *out) {
    void *attrs = NULL;
    cvy_value *made = NULL;
    CVY_TRY(find_op(op_name, &spec->op));
    if (spec->op->n_out < 1 || spec->op->flags & CVY_OP_VARIADIC)
        return CVY_FAIL(CVY_ERR_USAGE, "operator %s belongs to no layer; it is for the library's own use",
                        op_name);
    CVY_TRY(cvy_pool_alloc(&g->pool, spec->op->attrs_size, &attrs));
    cvy_attrs_default(spec->op, attrs);
    CVY_TRY(cvy_attrs_parse(spec->op, attributes ? attributes : "", attrs));
    spec->attrs = attrs;
    CVY_TRY(cvy_pool_alloc(&g->pool, (size_t)spec->op->n_out * sizeof *made, (void **)&made));
    CVY_TRY(cvy_graph_add_node(g, spec, made));
    *out = made[0];
    return CVY_OK;
}

cvy_value cvy_apply(cvy_graph *g, const char *op, const char *name, const cvy_value *inputs, int n,
                    const char *attributes) {
    if (g->error.code != CVY_OK)
        return CVY_NONE;
    struct cvy_node_spec spec = {
        .name = name, .in = inputs, .n_in = n, .phase = CVY_PHASE_FORWARD, .stage = g->stage};
    cvy_value v = CVY_NONE;
    cvy_status status = apply(g, op, &spec, attributes, &v);
    return settle(g, status, v);
}
