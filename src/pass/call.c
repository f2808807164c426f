/* What passes share about nodes: the backend call that stands for one, who reads what, flags. */
#include "pass/pass.h"

#include <string.h>

cvy_status cvy_graph_used(const struct cvy_graph *g, bool **out) {
    bool *used = NULL;
    CVY_TRY(CVY_ALLOC(used, g->values.n));
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct cvy_node *node = &g->nodes.data[i];
        for (int k = 0; k < node->n_in; k++) {
            if (node->in[k] != CVY_NONE) {
                used[node->in[k]] = true;
            }
        }
    }
    for (size_t i = 0; i < g->outputs.n; i++) {
        used[g->outputs.data[i].value] = true;
    }
    for (size_t i = 0; i < g->reducibles.n; i++) {
        used[g->reducibles.data[i].value] = true;
    }
    *out = used;
    return CVY_OK;
}

static void operand_of_value(const struct cvy_graph *g, cvy_value v, struct cvy_operand_spec *out) {
    *out = (struct cvy_operand_spec){.is_absent = v == CVY_NONE};
    if (v != CVY_NONE) {
        const struct cvy_value_info *info = &g->values.data[v];
        out->desc = info->desc;
        out->layout = info->layout;
        out->is_private = info->is_private;
        out->is_fixed = info->kind != CVY_VALUE_RESULT;
    }
}

void cvy_call_of_node(const struct cvy_graph *g, const struct cvy_node *n, const bool *used,
                      struct cvy_operand_spec *in, struct cvy_operand_spec *out, struct cvy_call *call) {
    *call = (struct cvy_call){.op = n->op,
                              .attrs = n->attrs,
                              .n_in = n->n_in,
                              .n_out = n->n_out,
                              .in = in,
                              .out = out,
                              .algorithm = n->algorithm};
    for (int k = 0; k < n->n_in; k++) {
        operand_of_value(g, n->in[k], &in[k]);
    }
    for (int o = 0; o < n->n_out; o++) {
        operand_of_value(g, n->out[o], &out[o]);
        out[o].is_absent = used && !used[n->out[o]] && n->phase != CVY_PHASE_UPDATE;
    }
}

cvy_status cvy_node_set_flag(struct cvy_pool *pool, struct cvy_node *node, const char *flag, bool value) {
    for (int i = 0; i < node->op->n_attrs; i++) {
        const struct cvy_attr *attr = &node->op->attrs[i];
        if (attr->type == CVY_ATTR_BOOL && strcmp(attr->name, flag) == 0) {
            CVY_TRY(cvy_pool_copy(pool, node->attrs, node->op->attrs_size, &node->attrs));
            *(bool *)((char *)node->attrs + attr->offset) = value;
            return CVY_OK;
        }
    }
    return CVY_OK;
}
