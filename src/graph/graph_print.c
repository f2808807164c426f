/* Writes the text form of a graph (see graph.h): what `explain` shows and cvy_graph_parse reads. */
#include "graph/graph_text.h"

#include <string.h>

const char *const cvy_value_kind_names[] = {
    [CVY_VALUE_INPUT] = "input", [CVY_VALUE_PARAM] = "param", [CVY_VALUE_BUFFER] = "buffer",
    [CVY_VALUE_STATE] = "state", [CVY_VALUE_HYPER] = "hyper", [CVY_VALUE_RESULT] = "result",
};
const char *const cvy_init_names[CVY_N_INITS] = {
    [CVY_INIT_ZERO] = "zero",     [CVY_INIT_ONE] = "one",           [CVY_INIT_UNIFORM] = "uniform",
    [CVY_INIT_NORMAL] = "normal", [CVY_INIT_CONSTANT] = "constant",
};
const char *const cvy_phase_names[] = {
    [CVY_PHASE_FORWARD] = "forward",
    [CVY_PHASE_BACKWARD] = "backward",
    [CVY_PHASE_UPDATE] = "update",
    [CVY_PHASE_REFRESH] = "refresh",
};
const char *const cvy_reduce_names[] = {
    [CVY_REDUCE_GRADIENT] = "gradient",
    [CVY_REDUCE_STATISTIC] = "statistic",
    [CVY_REDUCE_LOSS] = "loss",
    [CVY_REDUCE_HITS] = "hits",
};

bool cvy_layer_is_implied(const struct cvy_op *op, const char *layer, const char *first_output) {
    if (!first_output || op->flags & CVY_OP_UPDATE)
        return false;
    size_t n = strlen(layer);
    if (strncmp(first_output, layer, n) != 0)
        return false;
    if (op->n_out == 1)
        return first_output[n] == '\0';
    return first_output[n] == '.' && strcmp(first_output + n + 1, op->out_names[0]) == 0;
}

cvy_status cvy_layer_imply(const struct cvy_op *op, const char *first_output, struct cvy_pool *pool,
                           const char **layer) {
    char *name = NULL;
    if (first_output) {
        CVY_TRY(cvy_pool_strdup(pool, first_output, &name));
        size_t n = strlen(name), tail = op->n_out > 1 ? strlen(op->out_names[0]) + 1 : 0;
        name[n > tail ? n - tail : n] = '\0';
    }
    if (!name || !cvy_layer_is_implied(op, name, first_output))
        return CVY_FAIL(CVY_ERR_DATA, "the layer's name cannot be told from the outputs; add: ; layer NAME");
    *layer = name;
    return CVY_OK;
}

static void print_value(const struct cvy_value_info *info, cvy_layout_printer layouts, struct cvy_text *out) {
    cvy_text_printf(out, "%s ", info->name);
    cvy_desc_print(out, &info->desc);
    if (layouts && info->layout) {
        cvy_text_printf(out, "@");
        layouts(info->layout, out);
    }
}

static void print_root(const struct cvy_value_info *info, cvy_layout_printer layouts, struct cvy_text *out) {
    cvy_text_printf(out, "%s ", cvy_value_kind_names[info->kind]);
    print_value(info, layouts, out);
    if (info->has_batch)
        cvy_text_printf(out, " batch");
    if (info->init.kind != CVY_INIT_ZERO)
        cvy_text_printf(out, " %s", cvy_init_names[info->init.kind]);
    if (cvy_init_has_scale(info->init.kind)) {
        cvy_text_printf(out, "(");
        cvy_f64_print(out, info->init.scale);
        cvy_text_printf(out, ")");
    }
    cvy_text_printf(out, "\n");
}

/* What stands behind ";": all that is not the usual, and the id. */
static void print_notes(const struct cvy_graph *g, const struct cvy_node *node, struct cvy_text *out) {
    const char *first = node->n_out > 0 ? cvy_graph_value(g, node->out[0])->name : NULL;
    cvy_text_printf(out, "  ; ");
    if (!cvy_layer_is_implied(node->op, node->name, first))
        cvy_text_printf(out, "layer %s, ", node->name);
    if (node->stage >= 0)
        cvy_text_printf(out, "stage %d, ", node->stage);
    cvy_text_printf(out, "id %u", node->id);
    if (node->phase != CVY_PHASE_FORWARD)
        cvy_text_printf(out, ", %s", cvy_phase_names[node->phase]);
    if (node->bucket >= 0)
        cvy_text_printf(out, ", bucket %d", node->bucket);
    if (node->algorithm != 0)
        cvy_text_printf(out, ", algorithm %d", node->algorithm);
}

static void print_node(const struct cvy_graph *g, const struct cvy_node *node, cvy_layout_printer layouts,
                       struct cvy_text *out) {
    for (int o = 0; o < node->n_out; o++) {
        cvy_text_printf(out, "%s", o ? ", " : "");
        print_value(cvy_graph_value(g, node->out[o]), layouts, out);
    }
    cvy_text_printf(out, "%s= %s(", node->n_out ? " " : "", node->op->name);
    int n_in = node->n_in;
    while (n_in > 0 && node->in[n_in - 1] == CVY_NONE && !(node->op->flags & CVY_OP_VARIADIC))
        n_in--; /* absent ones at the end go without saying */
    for (int i = 0; i < n_in; i++)
        cvy_text_printf(out, "%s%s", i ? ", " : "",
                        node->in[i] == CVY_NONE ? "-" : cvy_graph_value(g, node->in[i])->name);
    cvy_text_printf(out, ")");
    struct cvy_text attrs = {0};
    cvy_attrs_print(node->op, node->attrs, &attrs);
    if (attrs.n > 0)
        cvy_text_printf(out, " %s", attrs.data);
    cvy_text_free(&attrs);
    print_notes(g, node, out);
    cvy_text_printf(out, "\n");
}

static void print_tables(const struct cvy_graph *g, struct cvy_text *out) {
    for (size_t i = 0; i < g->reducibles.n; i++) {
        const struct cvy_reducible *r = &g->reducibles.data[i];
        cvy_text_printf(out, "sum %s %s", cvy_reduce_names[r->kind], cvy_graph_value(g, r->value)->name);
        if (r->target != CVY_NONE)
            cvy_text_printf(out, " for %s", cvy_graph_value(g, r->target)->name);
        if (r->bucket >= 0)
            cvy_text_printf(out, " bucket %d", r->bucket);
        cvy_text_printf(out, "\n");
    }
    for (size_t i = 0; i < g->outputs.n; i++)
        cvy_text_printf(out, "output %s = %s\n", g->outputs.data[i].name,
                        cvy_graph_value(g, g->outputs.data[i].value)->name);
}

cvy_status cvy_graph_print(const struct cvy_graph *g, cvy_layout_printer layouts, struct cvy_text *out) {
    CVY_TRY(cvy_graph_status(g));
    cvy_text_printf(out, "graph batch %lld next %u", (long long)g->batch, g->next_id);
    if (g->n_buckets > 0)
        cvy_text_printf(out, " buckets %d", g->n_buckets);
    cvy_text_printf(out, "\n");
    size_t v = 0; /* values up to here are written */
    for (size_t n = 0; n < g->nodes.n; n++) {
        const struct cvy_node *node = &g->nodes.data[n];
        for (; node->n_out > 0 && v < (size_t)node->out[0]; v++)
            print_root(&g->values.data[v], layouts, out);
        print_node(g, node, layouts, out);
        v += (size_t)node->n_out;
    }
    for (; v < g->values.n; v++)
        print_root(&g->values.data[v], layouts, out);
    print_tables(g, out);
    return out->status;
}
