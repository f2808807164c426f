/* stage: which stage of the model each node belongs to. Said in the graph (cvy_stage), or balanced: the nodes, in
   their order, are cut into runs so that the slowest stage is as fast as it can be. */
#include "pass/pass.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* Seconds on a processor that computes 100 Gflop/s and moves 10 GB/s: only the ratio matters. The backward pass costs
   twice the forward one for every layer, so it changes no balance. */
double cvy_node_time(const struct cvy_graph *g, const struct cvy_node *node) {
    struct cvy_desc in[32];
    struct cvy_cost cost = {0, 0};
    struct cvy_infer call = {
        .op = node->op, .attrs = node->attrs, .n_in = node->n_in, .n_out = node->n_out, .in = in};
    for (int k = 0; k < node->n_in; k++)
        in[k] = node->in[k] == CVY_NONE ? CVY_DESC_ABSENT : g->values.data[node->in[k]].desc;
    for (int k = 0; k < node->n_out; k++)
        call.out[k] = g->values.data[node->out[k]].desc;
    cvy_op_cost(&call, &cost);
    return cost.flops / 100e9 + cost.bytes / 10e9;
}

/* best[k][i]: the slowest stage when nodes 0 .. i-1 form k + 1 stages; cut[k][i]: where the last one begins. */
static cvy_status cut_evenly(const double *time, size_t n, int32_t n_stages, int32_t *stage) {
    size_t width = n + 1;
    double *best = NULL, *before = NULL;
    size_t *cut = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(CVY_ALLOC(best, width * (size_t)n_stages));
    CVY_TRY_OUT(CVY_ALLOC(cut, width * (size_t)n_stages));
    CVY_TRY_OUT(CVY_ALLOC(before, width));
    for (size_t i = 0; i < n; i++)
        before[i + 1] = before[i] + time[i];
    for (size_t i = 0; i <= n; i++)
        best[i] = before[i];
    for (int32_t k = 1; k < n_stages; k++) {
        for (size_t i = 0; i <= n; i++) {
            double *b = &best[(size_t)k * width + i];
            *b = DBL_MAX;
            for (size_t j = (size_t)k; j < i; j++) { /* every stage has a node */
                double slowest = best[(size_t)(k - 1) * width + j], last = before[i] - before[j];
                slowest = slowest > last ? slowest : last;
                if (slowest < *b) {
                    *b = slowest;
                    cut[(size_t)k * width + i] = j;
                }
            }
        }
    }
    for (size_t end = n, k = (size_t)n_stages; k-- > 0;) {
        size_t begin = k ? cut[k * width + end] : 0;
        for (size_t i = begin; i < end; i++)
            stage[i] = (int32_t)k;
        end = begin;
    }
out:
    free(best);
    free(cut);
    free(before);
    return status;
}

static cvy_status balance(struct cvy_graph *g, int32_t n_stages) {
    double *time = NULL;
    int32_t *stage = NULL;
    size_t *node = NULL, n = 0;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(CVY_ALLOC(time, g->nodes.n));
    CVY_TRY_OUT(CVY_ALLOC(stage, g->nodes.n));
    CVY_TRY_OUT(CVY_ALLOC(node, g->nodes.n));
    for (size_t i = 0; i < g->nodes.n; i++) {
        if (g->nodes.data[i].phase == CVY_PHASE_FORWARD) {
            time[n] = cvy_node_time(g, &g->nodes.data[i]);
            node[n++] = i;
        }
    }
    if ((size_t)n_stages > n) {
        status = CVY_FAIL(CVY_ERR_USAGE,
                          "%d stages for a model of %zu operators: take at most %zu devices a replica",
                          n_stages, n, n);
        goto out;
    }
    CVY_TRY_OUT(cut_evenly(time, n, n_stages, stage));
    for (size_t i = 0; i < n; i++)
        g->nodes.data[node[i]].stage = stage[i];
out:
    free(time);
    free(stage);
    free(node);
    return status;
}

/* What the graph says; a node that says nothing goes with the one before it. */
static cvy_status take_said(struct cvy_graph *g, int32_t n_stages, int32_t highest) {
    int32_t now = 0;
    if (highest + 1 != n_stages)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "the model is built in %d stages, the mesh has %d: take %d devices a replica",
                        highest + 1, n_stages, highest + 1);
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct cvy_node *node = &g->nodes.data[i];
        now = node->stage >= 0 ? node->stage : now;
        node->stage = now;
    }
    return CVY_OK;
}

/* Statistics are kept where they are made. */
static void follow_statistics(struct cvy_graph *g) {
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct cvy_node *node = &g->nodes.data[i];
        for (int k = 0; node->phase == CVY_PHASE_UPDATE && k < node->n_in; k++) {
            int32_t maker = node->in[k] == CVY_NONE ? -1 : g->values.data[node->in[k]].node;
            if (maker >= 0)
                node->stage = g->nodes.data[maker].stage;
        }
    }
}

static cvy_status check_order(const struct cvy_graph *g) {
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct cvy_node *node = &g->nodes.data[i];
        for (int k = 0; node->phase == CVY_PHASE_FORWARD && k < node->n_in; k++) {
            int32_t maker = node->in[k] == CVY_NONE ? -1 : g->values.data[node->in[k]].node;
            if (maker >= 0 && g->nodes.data[maker].stage > node->stage)
                return CVY_FAIL(CVY_ERR_USAGE,
                                "layer %s of stage %d reads what layer %s of stage %d makes: stages "
                                "must follow the order of the layers",
                                node->name, node->stage, g->nodes.data[maker].name,
                                g->nodes.data[maker].stage);
        }
    }
    return CVY_OK;
}

cvy_status cvy_pass_stages(struct cvy_graph *g, int32_t n_stages) {
    int32_t highest = -1;
    for (size_t i = 0; i < g->nodes.n; i++)
        highest = g->nodes.data[i].stage > highest ? g->nodes.data[i].stage : highest;
    if (n_stages == 1) {
        for (size_t i = 0; i < g->nodes.n; i++)
            g->nodes.data[i].stage = 0;
        return CVY_OK;
    }
    CVY_TRY(highest >= 0 ? take_said(g, n_stages, highest) : balance(g, n_stages));
    follow_statistics(g);
    return check_order(g);
}

void cvy_pass_stages_like(struct cvy_graph *g, const struct cvy_graph *like) {
    int32_t now = 0;
    for (size_t i = 0; i < g->nodes.n; i++) {
        for (size_t k = 0; k < like->nodes.n; k++) {
            if (like->nodes.data[k].id == g->nodes.data[i].id &&
                like->nodes.data[k].phase == CVY_PHASE_FORWARD)
                now = like->nodes.data[k].stage;
        }
        g->nodes.data[i].stage = now;
    }
}
