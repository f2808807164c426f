/* autodiff: the reverse sweep. Every FORWARD node, last to first, turns the gradients of its outputs into
   nodes that compute the gradients of its inputs; where a value has several readers their gradients are
   added. Only what leads to a parameter is differentiated. */
#include "pass/pass.h"

#include <stdlib.h>
#include <string.h>

struct sweep {
    struct cvy_graph *g;
    size_t n_forward; /* nodes before the sweep */
    size_t n_values;  /* values before the sweep */
    bool *is_trained; /* per value: depends on a parameter */
    cvy_value *grad;  /* per value */
};

static void mark_trained(struct sweep *s) {
    for (size_t v = 0; v < s->n_values; v++) {
        const struct cvy_value_info *info = &s->g->values.data[v];
        s->is_trained[v] = info->kind == CVY_VALUE_PARAM && !info->is_frozen;
        s->grad[v] = CVY_NONE;
    }
    for (size_t i = 0; i < s->n_forward; i++) {
        const struct cvy_node *node = &s->g->nodes.data[i];
        bool any = false;
        for (int k = 0; k < node->n_in; k++) {
            any |= node->in[k] != CVY_NONE && s->is_trained[node->in[k]];
        }
        for (int o = 0; any && node->op->grad && o < node->n_out; o++) {
            s->is_trained[node->out[o]] = true;
        }
    }
}

static cvy_status seed_gradient(struct sweep *s, cvy_value loss) {
    const struct cvy_value_info *info = cvy_graph_value(s->g, loss);
    if (info->node < 0 || info->desc.dtype != CVY_F32 || cvy_shape_count(&info->desc.shape) != 1) {
        return CVY_FAIL(CVY_ERR_USAGE,
                        "the loss must be one float32 that a node computes; take cvy_batch_mean "
                        "or cvy_cross_entropy of the model's result");
    }
    if (!s->is_trained[loss]) {
        return CVY_FAIL(CVY_ERR_USAGE, "the loss does not depend on any parameter");
    }
    cvy_value scale =
        cvy_graph_find(s->g, "loss_scale"); /* with --amp fp16: what the loss is multiplied by */
    if (scale != CVY_NONE) {
        s->grad[loss] = scale;
        return CVY_OK;
    }
    /* d loss / d loss = 1, the default value of `constant` */
    const struct cvy_node of = s->g->nodes.data[info->node];
    return cvy_graph_add_grad(s->g, &of, "constant", NULL, NULL, 0, &s->grad[loss]);
}

static cvy_status accumulate(struct sweep *s, const struct cvy_node *node, cvy_value into, cvy_value g) {
    if (s->grad[into] == CVY_NONE) {
        s->grad[into] = g;
        return CVY_OK;
    }
    cvy_value both[2] = {s->grad[into], g};
    return cvy_graph_add_grad(s->g, node, "add", NULL, both, 2, &s->grad[into]);
}

static cvy_status differentiate(struct sweep *s, size_t index) {
    const struct cvy_node node = s->g->nodes.data[index]; /* a copy: the array moves as nodes are added */
    cvy_value gout[CVY_MAX_OUT], gin[32];
    bool any = false;
    uint32_t want = 0;
    for (int o = 0; o < node.n_out; o++) {
        gout[o] = s->grad[node.out[o]];
        any |= gout[o] != CVY_NONE;
    }
    for (int k = 0; k < node.n_in; k++) {
        gin[k] = CVY_NONE;
        want |= node.in[k] != CVY_NONE && s->is_trained[node.in[k]] ? 1u << k : 0;
    }
    if (!any || !want) {
        return CVY_OK;
    }
    CVY_TRY(node.op->grad(s->g, &node, want, gout, gin));
    for (int k = 0; k < node.n_in; k++) {
        if (gin[k] != CVY_NONE && (want >> k & 1)) {
            CVY_TRY(accumulate(s, &node, node.in[k], gin[k]));
        }
    }
    return CVY_OK;
}

static bool reads(const struct cvy_node *node, cvy_value v) {
    for (int k = 0; k < node->n_in; k++) {
        if (node->in[k] == v)
            return true;
    }
    return false;
}

/* With a scaled loss: the gradient of a parameter, of which this node was the first reader, is whole now; it is divided
   by the scale again. */
static cvy_status unscale(struct sweep *s, size_t index) {
    cvy_value scale = cvy_graph_find(s->g, "loss_scale");
    for (int k = 0; scale != CVY_NONE && k < s->g->nodes.data[index].n_in; k++) {
        cvy_value v = s->g->nodes.data[index].in[k];
        bool is_first =
            v != CVY_NONE && s->g->values.data[v].kind == CVY_VALUE_PARAM && s->grad[v] != CVY_NONE;
        for (size_t i = 0; i < index && is_first; i++)
            is_first = s->g->nodes.data[i].phase != CVY_PHASE_FORWARD || !reads(&s->g->nodes.data[i], v);
        if (!is_first)
            continue;
        const struct cvy_node of = s->g->nodes.data[index];
        cvy_value in[2] = {s->grad[v], scale};
        CVY_TRY(cvy_graph_add_grad(s->g, &of, "unscale", NULL, in, 2, &s->grad[v]));
    }
    return CVY_OK;
}

static cvy_status add_reducible(struct cvy_graph *g, cvy_value value, cvy_value target,
                                enum cvy_reduce_kind kind) {
    struct cvy_reducible r = {.value = value, .target = target, .kind = kind, .bucket = -1};
    return cvy_vec_push(&g->reducibles, r);
}

static cvy_status collect_forward(struct sweep *s) {
    struct cvy_graph *g = s->g;
    cvy_value loss = cvy_graph_output(g, "loss"), hits = cvy_graph_output(g, "hits");
    CVY_TRY(add_reducible(g, loss, CVY_NONE, CVY_REDUCE_LOSS));
    if (hits != CVY_NONE) {
        CVY_TRY(add_reducible(g, hits, CVY_NONE, CVY_REDUCE_HITS));
    }
    for (size_t i = 0; i < s->n_forward;
         i++) { /* what an UPDATE node reads of a forward node is a statistic */
        const struct cvy_node *node = &g->nodes.data[i];
        for (int k = 0; node->phase == CVY_PHASE_UPDATE && k < node->n_in; k++) {
            if (g->values.data[node->in[k]].kind == CVY_VALUE_RESULT) {
                CVY_TRY(add_reducible(g, node->in[k], node->in[0], CVY_REDUCE_STATISTIC));
            }
        }
    }
    return CVY_OK;
}

static int by_producer(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return x[0] < y[0] ? -1 : x[0] > y[0];
}

/* The gradients in the order in which the backward pass makes them: that is the order of the buckets. */
static cvy_status collect_gradients(struct sweep *s) {
    int64_t(*order)[2] = NULL; /* producer * outputs + output, parameter */
    size_t n = 0;
    CVY_TRY(cvy_alloc_items(s->n_values, sizeof *order, (void **)&order));
    for (size_t v = 0; v < s->n_values; v++) {
        if (s->g->values.data[v].kind == CVY_VALUE_PARAM && s->grad[v] != CVY_NONE) {
            const struct cvy_value_info *info = cvy_graph_value(s->g, s->grad[v]);
            order[n][0] = (int64_t)info->node * CVY_MAX_OUT + info->output;
            order[n++][1] = (int64_t)v;
        }
    }
    qsort(order, n, sizeof *order, by_producer);
    cvy_status status = CVY_OK;
    for (size_t i = 0; i < n && status == CVY_OK; i++) {
        cvy_value v = (cvy_value)order[i][1];
        status = add_reducible(s->g, s->grad[v], v, CVY_REDUCE_GRADIENT);
    }
    free(order);
    return status;
}

cvy_status cvy_pass_autodiff(struct cvy_graph *g) {
    cvy_value loss = cvy_graph_output(g, "loss");
    if (loss == CVY_NONE) {
        return CVY_FAIL(CVY_ERR_USAGE,
                        "the graph has no output \"loss\": name one with cvy_output() to train it");
    }
    struct sweep s = {.g = g, .n_forward = g->nodes.n, .n_values = g->values.n};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(CVY_ALLOC(s.is_trained, s.n_values));
    CVY_TRY_OUT(CVY_ALLOC(s.grad, s.n_values));
    mark_trained(&s);
    CVY_TRY_OUT(seed_gradient(&s, loss));
    for (size_t i = s.n_forward; i-- > 0;) {
        if (g->nodes.data[i].phase == CVY_PHASE_FORWARD) {
            CVY_TRY_OUT(differentiate(&s, i));
            CVY_TRY_OUT(unscale(&s, i));
        }
    }
    CVY_TRY_OUT(collect_forward(&s));
    CVY_TRY_OUT(collect_gradients(&s));
out:
    free(s.is_trained);
    free(s.grad);
    return status;
}
