/* choose: layouts and algorithms, node by node in order. A node sees the layouts that its inputs have, and says
   which it wants; where the two differ a `reorder` goes between: next to the node for activations, into the
   REFRESH phase for parameters, whose packed copy then serves until the next update. */
#include "pass/pass.h"

#include <stdlib.h>
#include <string.h>

struct packed { /* a value in another layout: made once, reused by later nodes that want the same */
    cvy_value from, copy;
    const struct cvy_layout *layout;
};

struct chooser {
    const struct cvy_graph *g;
    const struct cvy_choose_options *o;
    const struct cvy_masters *masters;
    struct cvy_graph *to;
    cvy_value *map;
    bool *used;
    const struct cvy_layout **wanted; /* per value of g: the master that a gradient must have */
    bool *is_gradient;                /* per value of g */
    CVY_VEC(struct packed) packs;
    struct cvy_operand_spec *in, *out;
};

const struct cvy_layout *cvy_masters_find(const struct cvy_masters *masters, const char *name) {
    for (size_t i = 0; i < masters->items.n; i++) {
        if (strcmp(masters->items.data[i].name, name) == 0) {
            return masters->items.data[i].layout;
        }
    }
    return NULL;
}

void cvy_masters_free(struct cvy_masters *masters) { cvy_vec_free(&masters->items); }

/* Plain unless the kernel says otherwise. `is_fixed` of an output asks for exactly that layout. */
static cvy_status ask_kernel(const struct cvy_choose_options *o, struct cvy_call *call) {
    call->rule_batch = o->rule_batch;
    call->is_training = o->is_training;
    const struct cvy_kernel_impl *impl = cvy_kernel_select(o->device, call, NULL);
    if (impl && impl->choose) {
        return impl->choose(o->device, call);
    }
    for (int k = 0; k < call->n_in; k++) {
        call->in[k].layout = NULL;
    }
    for (int k = 0; k < call->n_out; k++) {
        call->out[k].layout = NULL;
    }
    return CVY_OK;
}

static const char *layout_label(const struct chooser *c, const struct cvy_layout *layout) {
    struct cvy_text text = {0};
    char *name = NULL;
    c->o->device->backend->layout_print(layout, &text);
    if (text.status == CVY_OK) {
        (void)cvy_pool_strdup(&c->to->pool, text.data, &name);
    }
    cvy_text_free(&text);
    return name ? name : "?";
}

/* Made of a parameter, in the REFRESH phase. */
static bool is_packed(const struct cvy_graph *g, cvy_value v) {
    int32_t maker = g->values.data[v].node;
    return maker >= 0 && g->nodes.data[maker].phase == CVY_PHASE_REFRESH;
}

/* The value `v` of the new graph in `layout`. `near` gives phase and stage. */
static cvy_status in_layout(struct chooser *c, const struct cvy_node *near, cvy_value v,
                            const struct cvy_layout *layout, cvy_value *out) {
    const struct cvy_value_info *info = cvy_graph_value(c->to, v);
    if (info->layout == layout) {
        *out = v;
        return CVY_OK;
    }
    for (size_t i = 0; i < c->packs.n; i++) {
        if (c->packs.data[i].from == v && c->packs.data[i].layout == layout) {
            *out = c->packs.data[i].copy;
            return CVY_OK;
        }
    }
    bool is_stored = info->kind == CVY_VALUE_PARAM || is_packed(c->to, v);
    char *name = NULL;
    CVY_TRY(cvy_pool_printf(&c->to->pool, &name, "%s:%s", info->name, layout_label(c, layout)));
    struct cvy_node_spec spec = {.op = cvy_op_find("reorder"),
                                 .name = name,
                                 .in = &v,
                                 .n_in = 1,
                                 .phase = is_stored ? CVY_PHASE_REFRESH : near->phase,
                                 .stage = near->stage,
                                 .id = near->id};
    CVY_TRY(cvy_graph_add_node(c->to, &spec, out));
    cvy_graph_value(c->to, *out)->layout = layout;
    c->to->nodes.data[c->to->nodes.n - 1].bucket = near->bucket;
    struct packed made = {v, *out, layout};
    return cvy_vec_push(&c->packs, made);
}

/* Optimiser states lie as their parameter does; variadic groups have (param, grad, states…). */
static void follow_params(struct chooser *c) {
    for (size_t i = 0; i < c->g->nodes.n; i++) {
        const struct cvy_node *node = &c->g->nodes.data[i];
        if (!(node->op->flags & CVY_OP_OPTIMIZER)) {
            continue;
        }
        for (int k = node->op->n_lead_in; k < node->n_in; k += node->op->n_in) {
            const struct cvy_layout *layout = cvy_graph_value(c->to, c->map[node->in[k]])->layout;
            for (int s = 2; s < node->op->n_in; s++) {
                cvy_graph_value(c->to, c->map[node->in[k + s]])->layout = layout;
            }
        }
    }
}

static cvy_status start(struct chooser *c) {
    CVY_TRY(cvy_graph_used(c->g, &c->used));
    CVY_TRY(CVY_ALLOC(c->wanted, c->g->values.n));
    CVY_TRY(CVY_ALLOC(c->is_gradient, c->g->values.n));
    CVY_TRY(CVY_ALLOC(c->in, CVY_MAX_OPERANDS));
    CVY_TRY(CVY_ALLOC(c->out, CVY_MAX_OPERANDS));
    CVY_TRY(cvy_graph_copy_roots(c->g, &c->to, &c->map));
    for (size_t v = 0; v < c->to->values.n; v++) {
        struct cvy_value_info *info = &c->to->values.data[v];
        if (info->kind == CVY_VALUE_PARAM) {
            info->layout = cvy_masters_find(c->masters, info->name);
        }
    }
    for (size_t i = 0; i < c->g->reducibles.n; i++) {
        const struct cvy_reducible *r = &c->g->reducibles.data[i];
        c->is_gradient[r->value] = r->kind == CVY_REDUCE_GRADIENT;
        if (r->kind == CVY_REDUCE_GRADIENT) {
            c->wanted[r->value] = cvy_masters_find(c->masters, cvy_graph_value(c->g, r->target)->name);
        }
    }
    follow_params(c);
    return CVY_OK;
}

/* An update runs on whatever layout its stored values have: all operands of a group share it. */
static cvy_status choose_update(struct chooser *c, const struct cvy_node *node) {
    CVY_TRY(cvy_graph_copy_node(c->to, c->g, node, c->map));
    const struct cvy_node *copy = &c->to->nodes.data[c->to->nodes.n - 1];
    for (int o = 0; o < copy->n_out; o++) {
        int in = cvy_op_aliased_input(node->op, o);
        if (in >= 0) {
            cvy_graph_value(c->to, copy->out[o])->layout = cvy_graph_value(c->to, copy->in[in])->layout;
        }
    }
    return CVY_OK;
}

/* A reducible that came out in another layout than its parameter's is brought into it. */
static cvy_status settle_gradient(struct chooser *c, const struct cvy_node *node, cvy_value v) {
    if (!c->is_gradient[v]) {
        return CVY_OK;
    }
    struct cvy_node near = *node;
    near.bucket = -1;
    return in_layout(c, &near, c->map[v], c->wanted[v], &c->map[v]);
}

static cvy_status choose_node(struct chooser *c, const struct cvy_node *node) {
    if (node->phase == CVY_PHASE_UPDATE) {
        return choose_update(c, node);
    }
    struct cvy_call call;
    cvy_call_of_node(c->g, node, c->used, c->in, c->out, &call);
    for (int k = 0; k < node->n_in; k++) {
        if (node->in[k] != CVY_NONE) {
            c->in[k].layout = cvy_graph_value(c->to, c->map[node->in[k]])->layout;
        }
    }
    for (int o = 0; o < node->n_out; o++) {
        c->out[o].is_fixed = c->is_gradient[node->out[o]];
        c->out[o].layout = c->wanted[node->out[o]];
    }
    CVY_TRY(ask_kernel(c->o, &call));
    struct cvy_node copy = *node;
    copy.algorithm = call.algorithm;
    if ((node->op->flags & CVY_OP_PACKS) && node->phase == CVY_PHASE_FORWARD &&
        cvy_graph_value(c->g, node->in[0])->kind == CVY_VALUE_PARAM) {
        copy.phase = CVY_PHASE_REFRESH;
        copy.bucket = -1;
    }
    cvy_value in[32]; /* no operator but an update has more inputs */
    for (int k = 0; k < node->n_in; k++) {
        in[k] = CVY_NONE;
        if (node->in[k] != CVY_NONE) {
            CVY_TRY(in_layout(c, node, c->map[node->in[k]], call.in[k].layout, &in[k]));
        }
    }
    CVY_TRY(cvy_graph_copy_node(c->to, c->g, &copy, c->map));
    struct cvy_node *made = &c->to->nodes.data[c->to->nodes.n - 1];
    memcpy(made->in, in, (size_t)node->n_in * sizeof *in);
    for (int o = 0; o < node->n_out; o++) {
        cvy_graph_value(c->to, made->out[o])->layout = call.out[o].layout;
    }
    for (int o = 0; o < node->n_out; o++) {
        CVY_TRY(settle_gradient(c, node, node->out[o]));
    }
    return CVY_OK;
}

/* What the host reads is plain. */
static cvy_status finish(struct chooser *c) {
    struct cvy_node near = {.phase = CVY_PHASE_FORWARD, .stage = -1, .bucket = -1};
    for (size_t i = 0; i < c->g->outputs.n; i++) {
        cvy_value v;
        int32_t maker = cvy_graph_value(c->to, c->map[c->g->outputs.data[i].value])->node;
        near.stage = maker < 0 ? 0 : c->to->nodes.data[maker].stage;
        CVY_TRY(in_layout(c, &near, c->map[c->g->outputs.data[i].value], NULL, &v));
        CVY_TRY(cvy_graph_set_output(c->to, c->g->outputs.data[i].name, v));
    }
    for (size_t i = 0; i < c->g->reducibles.n; i++) {
        struct cvy_reducible r = c->g->reducibles.data[i];
        r.value = c->map[r.value];
        r.target = r.target == CVY_NONE ? CVY_NONE : c->map[r.target];
        CVY_TRY(cvy_vec_push(&c->to->reducibles, r));
    }
    c->to->n_buckets = c->g->n_buckets;
    /* a packed weight is remade right after the update of the bucket that holds its parameter */
    for (size_t i = 0; i < c->to->nodes.n; i++) {
        struct cvy_node *node = &c->to->nodes.data[i];
        if (node->phase == CVY_PHASE_REFRESH &&
            is_packed(c->to, node->in[0])) /* a packed copy of a packed one */
            node->bucket = c->to->nodes.data[cvy_graph_value(c->to, node->in[0])->node].bucket;
        for (size_t r = 0; node->phase == CVY_PHASE_REFRESH && r < c->to->reducibles.n; r++) {
            if (c->to->reducibles.data[r].target == node->in[0]) {
                node->bucket = c->to->reducibles.data[r].bucket;
            }
        }
    }
    return CVY_OK;
}

static void stop(struct chooser *c) {
    cvy_graph_free(c->to);
    free(c->map);
    free(c->used);
    free(c->wanted);
    free(c->is_gradient);
    free(c->in);
    free(c->out);
    cvy_vec_free(&c->packs);
}

cvy_status cvy_pass_choose(const struct cvy_graph *g, const struct cvy_choose_options *options,
                           const struct cvy_masters *masters, struct cvy_graph **out) {
    struct chooser c = {.g = g, .o = options, .masters = masters};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(start(&c));
    for (size_t i = 0; i < g->nodes.n; i++) {
        CVY_TRY_OUT(choose_node(&c, &g->nodes.data[i]));
    }
    CVY_TRY_OUT(finish(&c));
    *out = c.to;
    c.to = NULL;
out:
    stop(&c);
    return status;
}

/* Layouts alone, nothing inserted: what each parameter's gradient would like to be. */
static cvy_status walk_layouts(const struct cvy_graph *g, const struct cvy_choose_options *o,
                               const bool *used, const struct cvy_layout **layout,
                               struct cvy_operand_spec *in, struct cvy_operand_spec *out) {
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct cvy_node *node = &g->nodes.data[i];
        if (node->phase == CVY_PHASE_UPDATE) {
            continue;
        }
        struct cvy_call call;
        cvy_call_of_node(g, node, used, in, out, &call);
        for (int k = 0; k < node->n_in; k++) {
            in[k].layout = node->in[k] == CVY_NONE ? NULL : layout[node->in[k]];
        }
        CVY_TRY(ask_kernel(o, &call));
        for (int k = 0; k < node->n_out; k++) {
            layout[node->out[k]] = out[k].layout;
        }
    }
    return CVY_OK;
}

cvy_status cvy_pass_masters(const struct cvy_graph *g, const struct cvy_choose_options *options,
                            struct cvy_masters *masters) {
    const struct cvy_layout **layout = NULL;
    struct cvy_operand_spec *in = NULL, *out = NULL;
    bool *used = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(CVY_ALLOC(layout, g->values.n));
    CVY_TRY_OUT(CVY_ALLOC(in, CVY_MAX_OPERANDS));
    CVY_TRY_OUT(CVY_ALLOC(out, CVY_MAX_OPERANDS));
    CVY_TRY_OUT(cvy_graph_used(g, &used));
    CVY_TRY_OUT(walk_layouts(g, options, used, layout, in, out));
    for (size_t i = 0; i < g->reducibles.n; i++) {
        const struct cvy_reducible *r = &g->reducibles.data[i];
        if (r->kind == CVY_REDUCE_GRADIENT && layout[r->value]) {
            struct cvy_master item = {cvy_graph_value(g, r->target)->name, layout[r->value]};
            CVY_TRY_OUT(cvy_vec_push(&masters->items, item));
        }
    }
out:
    free(layout);
    free(in);
    free(out);
    free(used);
    return status;
}
