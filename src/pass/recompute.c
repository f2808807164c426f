/* recompute: what a batch_norm gives is not kept for the backward pass but made again from its input, which is kept in
   any case for its own gradient: one pass over the values more, and half of what most networks keep less. The second
   batch_norm normalises by the statistics of the first, so it gives the same bits. A residual that is such a result
   itself is made again before it, and so on back to one that is kept. */
#include "ops/batch_norm.h"
#include "pass/pass.h"

#include <stdlib.h>
#include <string.h>

enum answer { UNASKED, NO, YES };

struct rewriter {
    const struct cvy_graph *g;
    struct cvy_graph *to;
    cvy_value *map, *again; /* per value of g: its copy; the one made in the backward pass, or CVY_NONE */
    bool *is_kept;          /* per value: a BACKWARD node of the stage that makes it reads it */
    char *answer;           /* per value: can it be made again? */
};

static const struct cvy_node *maker_of(const struct rewriter *r, cvy_value v) {
    int32_t node = r->g->values.data[v].node;
    return node < 0 ? NULL : &r->g->nodes.data[node];
}

/* Does the stage that computes v itself read it here? What goes to another stage is sent, and stays as it is. */
static bool is_own(const struct rewriter *r, cvy_value v, int32_t stage) {
    const struct cvy_node *maker = v == CVY_NONE ? NULL : maker_of(r, v);
    return maker && maker->stage == stage;
}

static void find_kept(struct rewriter *r) {
    for (size_t i = 0; i < r->g->nodes.n; i++) {
        const struct cvy_node *node = &r->g->nodes.data[i];
        for (int k = 0; node->phase == CVY_PHASE_BACKWARD && k < node->n_in; k++) {
            if (is_own(r, node->in[k], node->stage))
                r->is_kept[node->in[k]] = true;
        }
    }
}

static cvy_value residual_of(const struct cvy_node *norm) {
    return norm->n_in > CVY_BATCH_NORM_RESIDUAL ? norm->in[CVY_BATCH_NORM_RESIDUAL] : CVY_NONE;
}

static bool can_remake(struct rewriter *r, cvy_value v);

/* Is v there in the backward pass of this stage, without being kept for our sake? */
static bool is_at_hand(struct rewriter *r, cvy_value v, int32_t stage) {
    return is_own(r, v, stage) && (r->is_kept[v] || can_remake(r, v));
}

static bool can_remake(struct rewriter *r, cvy_value v) {
    const struct cvy_node *norm = maker_of(r, v);
    if (r->answer[v] == UNASKED) {
        bool is_norm = norm && norm->phase == CVY_PHASE_FORWARD && !strcmp(norm->op->name, "batch_norm") &&
                       v == norm->out[CVY_BATCH_NORM_Y];
        bool can = is_norm && is_at_hand(r, norm->in[CVY_BATCH_NORM_X], norm->stage) &&
                   (residual_of(norm) == CVY_NONE || is_at_hand(r, residual_of(norm), norm->stage));
        r->answer[v] = can ? YES : NO;
    }
    return r->answer[v] == YES;
}

static cvy_status remake(struct rewriter *r, cvy_value v, cvy_value *out);

/* The node that makes v again, after what it needs. */
static cvy_status add_again(struct rewriter *r, cvy_value v) {
    const struct cvy_node *norm = maker_of(r, v);
    struct cvy_batch_norm_attrs attrs = *(const struct cvy_batch_norm_attrs *)norm->attrs;
    cvy_value in[CVY_BATCH_NORM_RESIDUAL + 1], made[CVY_MAX_OUT];
    struct cvy_node_spec spec = {.op = norm->op,
                                 .attrs = &attrs,
                                 .in = in,
                                 .n_in = CVY_BATCH_NORM_RESIDUAL + 1,
                                 .phase = CVY_PHASE_BACKWARD,
                                 .stage = norm->stage,
                                 .id = norm->id};
    char *name;
    attrs.training = false;
    CVY_TRY(cvy_pool_printf(&r->to->pool, &name, "%s.again", norm->name));
    spec.name = name;
    CVY_TRY(remake(r, norm->in[CVY_BATCH_NORM_X], &in[CVY_BATCH_NORM_X]));
    CVY_TRY(remake(r, residual_of(norm), &in[CVY_BATCH_NORM_RESIDUAL]));
    in[CVY_BATCH_NORM_WEIGHT] = r->map[norm->in[CVY_BATCH_NORM_WEIGHT]];
    in[CVY_BATCH_NORM_BIAS] = r->map[norm->in[CVY_BATCH_NORM_BIAS]];
    in[CVY_BATCH_NORM_RUNNING_MEAN] = r->map[norm->out[CVY_BATCH_NORM_MEAN]];
    in[CVY_BATCH_NORM_RUNNING_VAR] = r->map[norm->out[CVY_BATCH_NORM_VAR]];
    CVY_TRY(cvy_graph_add_node(r->to, &spec, made));
    r->again[v] = made[CVY_BATCH_NORM_Y];
    return CVY_OK;
}

/* v in the backward pass of its stage: made again, once, if that can be done, else its copy. */
static cvy_status remake(struct rewriter *r, cvy_value v, cvy_value *out) {
    *out = v == CVY_NONE ? CVY_NONE : r->map[v];
    if (v == CVY_NONE || !can_remake(r, v))
        return CVY_OK;
    if (r->again[v] == CVY_NONE)
        CVY_TRY(add_again(r, v));
    *out = r->again[v];
    return CVY_OK;
}

static cvy_status copy_backward(struct rewriter *r, const struct cvy_node *node) {
    cvy_value *in = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(CVY_ALLOC(in, (size_t)node->n_in));
    for (int k = 0; k < node->n_in; k++) {
        if (is_own(r, node->in[k], node->stage))
            CVY_TRY_OUT(remake(r, node->in[k], &in[k]));
        else
            in[k] = node->in[k] == CVY_NONE ? CVY_NONE : r->map[node->in[k]];
    }
    CVY_TRY_OUT(cvy_graph_copy_node(r->to, r->g, node, r->map));
    memcpy(r->to->nodes.data[r->to->nodes.n - 1].in, in, (size_t)node->n_in * sizeof *in);
out:
    free(in);
    return status;
}

cvy_status cvy_pass_recompute(const struct cvy_graph *g, struct cvy_graph **out) {
    struct rewriter r = {.g = g};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(CVY_ALLOC(r.again, g->values.n));
    CVY_TRY_OUT(CVY_ALLOC(r.is_kept, g->values.n));
    CVY_TRY_OUT(CVY_ALLOC(r.answer, g->values.n));
    CVY_TRY_OUT(cvy_graph_copy_roots(g, &r.to, &r.map));
    for (size_t v = 0; v < g->values.n; v++)
        r.again[v] = CVY_NONE;
    find_kept(&r);
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct cvy_node *node = &g->nodes.data[i];
        if (node->phase == CVY_PHASE_BACKWARD)
            CVY_TRY_OUT(copy_backward(&r, node));
        else
            CVY_TRY_OUT(cvy_graph_copy_node(r.to, g, node, r.map));
    }
    CVY_TRY_OUT(cvy_graph_copy_tables(r.to, g, r.map));
    *out = r.to;
    r.to = NULL;
out:
    cvy_graph_free(r.to);
    free(r.map);
    free(r.again);
    free(r.is_kept);
    free(r.answer);
    return status;
}
