/* Adding nodes: inputs are checked against the operator's descriptor, shapes inferred, outputs made and named.
   Invariants: a node's inputs are older than itself; its outputs are consecutive values. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

static cvy_status check_inputs(const struct cvy_graph *g, const struct cvy_node_spec *spec) {
    const struct cvy_op *op = spec->op;
    if (cvy_op_groups(op, spec->n_in) < 0)
        return CVY_FAIL(CVY_ERR_USAGE, "%s: operator %s takes %d to %d inputs%s, not %d", spec->name,
                        op->name, op->n_lead_in + op->n_in_min, op->n_lead_in + op->n_in,
                        op->flags & CVY_OP_VARIADIC ? " or more groups of them" : "", spec->n_in);
    for (int i = 0; i < spec->n_in; i++) {
        cvy_value v = spec->in[i];
        if (v == CVY_NONE && !cvy_op_is_optional(op, i))
            return CVY_FAIL(CVY_ERR_USAGE, "%s: operator %s lacks its input \"%s\"", spec->name, op->name,
                            cvy_op_in_name(op, i));
        if (v != CVY_NONE && (v < 0 || (size_t)v >= g->values.n))
            return CVY_FAIL(CVY_ERR_USAGE, "%s: input \"%s\" is not a value of this graph", spec->name,
                            cvy_op_in_name(op, i));
    }
    return CVY_OK;
}

static void describe_inputs(const struct cvy_graph *g, const struct cvy_node *node, struct cvy_desc *in) {
    for (int i = 0; i < node->n_in; i++)
        in[i] = node->in[i] == CVY_NONE ? CVY_DESC_ABSENT : cvy_graph_value(g, node->in[i])->desc;
}

void cvy_graph_call(const struct cvy_graph *g, const struct cvy_node *node, struct cvy_desc *in,
                    struct cvy_infer *call) {
    *call = (struct cvy_infer){
        .op = node->op, .attrs = node->attrs, .n_in = node->n_in, .n_out = node->n_out, .in = in};
    describe_inputs(g, node, in);
    for (int i = 0; i < node->n_out; i++)
        call->out[i] = cvy_graph_value(g, node->out[i])->desc;
}

cvy_status cvy_graph_infer(const struct cvy_graph *g, const struct cvy_node *node, struct cvy_desc *out) {
    struct cvy_desc *in = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(CVY_ALLOC(in, (size_t)node->n_in));
    describe_inputs(g, node, in);
    status = cvy_op_infer(node->op, node->attrs, node->n_in, in, out);
    if (status != CVY_OK)
        cvy_fail_prefix(status, "%s: ", node->name);
    free(in);
    return status;
}

/* The name of output o of a node whose layer is called `layer`. */
static void print_output_name(const struct cvy_graph *g, const struct cvy_node *node, const char *layer,
                              int o, struct cvy_text *out) {
    const struct cvy_op *op = node->op;
    int aliased = op->flags & CVY_OP_UPDATE ? cvy_op_aliased_input(op, o) : -1;
    if (aliased >= 0 && node->in[aliased] != CVY_NONE) {
        cvy_text_printf(out, "%s+", cvy_graph_value(g, node->in[aliased])->name);
        return;
    }
    cvy_text_printf(out, "%s", layer);
    if (op->n_out > 1)
        cvy_text_printf(out, ".%s", op->out_names[o % op->n_out]);
    if (o >= op->n_out)
        cvy_text_printf(out, ".%d", o / op->n_out);
}

/* Whether no output of a node called `layer` would take a name that is there. An update's outputs are named
   after its inputs, whatever the layer: a clash there is an error of its own. */
static cvy_status is_free(const struct cvy_graph *g, const struct cvy_node *node, const char *layer,
                          bool *out) {
    struct cvy_text name = {0};
    *out = true;
    for (int o = 0; o < node->n_out && *out && !(node->op->flags & CVY_OP_UPDATE); o++) {
        name.n = 0;
        print_output_name(g, node, layer, o, &name);
        *out = name.data && cvy_graph_find(g, name.data) == CVY_NONE;
    }
    cvy_status status = name.status;
    cvy_text_free(&name);
    return status;
}

/* NAME, else NAME#2, NAME#3, …: the first that is free. */
static cvy_status choose_name(struct cvy_graph *g, const char *wanted, struct cvy_node *node) {
    struct cvy_text layer = {0};
    cvy_status status = CVY_OK;
    bool free_name = false;
    for (int k = 1; !free_name; k++) {
        layer.n = 0;
        cvy_text_printf(&layer, "%s", wanted);
        if (k > 1)
            cvy_text_printf(&layer, "#%d", k);
        CVY_TRY_OUT(layer.status);
        CVY_TRY_OUT(is_free(g, node, layer.data, &free_name));
    }
    char *copy;
    CVY_TRY_OUT(cvy_pool_strdup(&g->pool, layer.data, &copy));
    node->name = copy;
out:
    cvy_text_free(&layer);
    return status;
}

static cvy_status add_outputs(struct cvy_graph *g, const struct cvy_node *node, const struct cvy_desc *desc) {
    struct cvy_text name = {0};
    cvy_status status = CVY_OK;
    for (int o = 0; o < node->n_out; o++) {
        name.n = 0;
        print_output_name(g, node, node->name, o, &name);
        CVY_TRY_OUT(name.status);
        CVY_TRY_OUT(cvy_graph_add_value(g, name.data, &desc[o], CVY_VALUE_RESULT, &node->out[o]));
        struct cvy_value_info *info = cvy_graph_value(g, node->out[o]);
        info->node = (int32_t)g->nodes.n;
        info->output = o;
        info->is_private = node->op->private_out >> (o % node->op->n_out) & 1;
    }
out:
    cvy_text_free(&name);
    return status;
}

/* Memory of a node, filled from its spec; no outputs yet. */
static cvy_status make_node(struct cvy_graph *g, const struct cvy_node_spec *spec, struct cvy_node *node) {
    const struct cvy_op *op = spec->op;
    int n_in = op->flags & CVY_OP_VARIADIC ? spec->n_in : op->n_in;
    *node = (struct cvy_node){.op = op,
                              .name = spec->name,
                              .n_in = n_in,
                              .phase = spec->phase,
                              .stage = spec->stage,
                              .bucket = -1,
                              .id = spec->id};
    node->n_out = cvy_op_groups(op, spec->n_in) * op->n_out;
    CVY_TRY(cvy_pool_alloc(&g->pool, (size_t)n_in * sizeof *node->in, (void **)&node->in));
    for (int i = 0; i < n_in; i++)
        node->in[i] = i < spec->n_in ? spec->in[i] : CVY_NONE;
    CVY_TRY(cvy_pool_alloc(&g->pool, (size_t)node->n_out * sizeof *node->out, (void **)&node->out));
    CVY_TRY(cvy_pool_alloc(&g->pool, op->attrs_size, &node->attrs));
    if (spec->attrs && op->attrs_size)
        memcpy(node->attrs, spec->attrs, op->attrs_size);
    else
        cvy_attrs_default(op, node->attrs);
    cvy_status status = cvy_attrs_check(op, node->attrs);
    return status == CVY_OK ? CVY_OK : cvy_fail_prefix(status, "%s: ", spec->name);
}

cvy_status cvy_graph_add_node(struct cvy_graph *g, const struct cvy_node_spec *given, cvy_value *out) {
    struct cvy_node_spec spec = *given;
    struct cvy_node node;
    struct cvy_desc *desc = NULL;
    cvy_status status = CVY_OK;
    if (!spec.name)
        spec.name = spec.op->name;
    CVY_TRY(check_inputs(g, &spec));
    CVY_TRY(make_node(g, &spec, &node));
    CVY_TRY(CVY_ALLOC(desc, (size_t)node.n_out));
    CVY_TRY_OUT(cvy_graph_infer(g, &node, desc));
    CVY_TRY_OUT(choose_name(g, spec.name, &node));
    CVY_TRY_OUT(add_outputs(g, &node, desc));
    if (node.id == 0)
        node.id = g->next_id++;
    CVY_TRY_OUT(cvy_vec_push(&g->nodes, node));
    if (out)
        memcpy(out, node.out, (size_t)node.n_out * sizeof *out);
out:
    free(desc);
    return status;
}

cvy_status cvy_graph_add_grad(struct cvy_graph *g, const struct cvy_node *of, const char *op,
                              const void *attrs, const cvy_value *in, int n_in, cvy_value *out) {
    struct cvy_node_spec spec = {.op = cvy_op_find(op),
                                 .attrs = attrs,
                                 .in = in,
                                 .n_in = n_in,
                                 .phase = CVY_PHASE_BACKWARD,
                                 .stage = of->stage,
                                 .id = of->id};
    if (!spec.op)
        return CVY_FAIL(CVY_ERR_FAILED, "the gradient of %s needs operator %s, which this build lacks",
                        of->op->name, op);
    char *name;
    CVY_TRY(cvy_pool_printf(&g->pool, &name, "%s'", of->name));
    spec.name = name;
    return cvy_graph_add_node(g, &spec, out);
}
