/* update: cuts what is summed over shards into buckets, and appends the optimiser, one node per bucket.
   Buckets follow the order in which the backward pass makes gradients, so that the first can be reduced while
   the rest is still computed; the first is small for an early start. Loss, hits and statistics, made in the
   forward pass, lead the first bucket: the loss is known before anything is updated. */
#include "pass/pass.h"

#include <stdlib.h>

static void cut_buckets(struct cvy_graph *g, const struct cvy_update_options *o) {
    size_t filled = 0;
    int32_t bucket = 0;
    for (size_t i = 0; i < g->reducibles.n; i++) {
        struct cvy_reducible *r = &g->reducibles.data[i];
        size_t n = cvy_desc_bytes(&cvy_graph_value(g, r->value)->desc);
        size_t limit = bucket == 0 ? o->first_bucket_bytes : o->bucket_bytes;
        if (r->kind == CVY_REDUCE_GRADIENT && filled > 0 && filled + n > limit) {
            bucket++;
            filled = 0;
        }
        r->bucket = bucket;
        filled += n;
    }
    g->n_buckets = bucket + 1;
}

/* batch_norm_update and its like, already in the graph, wait for the bucket of their statistic. */
static void place_statistics(struct cvy_graph *g) {
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct cvy_node *node = &g->nodes.data[i];
        node->bucket = -1;
        for (size_t r = 0; node->phase == CVY_PHASE_UPDATE && r < g->reducibles.n; r++) {
            for (int k = 0; k < node->n_in; k++) {
                if (node->in[k] == g->reducibles.data[r].value) {
                    node->bucket = g->reducibles.data[r].bucket;
                }
            }
        }
    }
}

/* The states of one parameter: "conv1.weight.momentum", zero, of the parameter's shape. */
static cvy_status add_states(struct cvy_graph *g, const struct cvy_op *op, cvy_value param,
                             cvy_value *group) {
    for (int k = 2; k < op->n_in; k++) {
        struct cvy_desc desc = cvy_graph_value(g, param)->desc;
        char *name = NULL;
        CVY_TRY(cvy_pool_printf(&g->pool, &name, "%s.%s", cvy_graph_value(g, param)->name,
                                op->in_names[op->n_lead_in + k]));
        CVY_TRY(cvy_graph_add_value(g, name, &desc, CVY_VALUE_STATE, &group[k]));
    }
    return CVY_OK;
}

static cvy_status optimise_bucket(struct cvy_graph *g, const struct cvy_update_options *o, cvy_value hyper,
                                  int32_t bucket) {
    const struct cvy_op *op = o->optimizer;
    cvy_value *in = NULL;
    char *name = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(CVY_ALLOC(in, 1 + g->reducibles.n * (size_t)op->n_in));
    int n = 0;
    in[n++] = hyper;
    for (size_t i = 0; i < g->reducibles.n; i++) {
        const struct cvy_reducible r = g->reducibles.data[i];
        if (r.kind == CVY_REDUCE_GRADIENT && r.bucket == bucket) {
            in[n] = r.target;
            in[n + 1] = r.value;
            CVY_TRY_OUT(add_states(g, op, r.target, &in[n]));
            n += op->n_in;
        }
    }
    if (n > 1) {
        CVY_TRY_OUT(cvy_pool_printf(&g->pool, &name, "%s.%d", op->name, bucket));
        struct cvy_node_spec spec = {.op = op,
                                     .name = name,
                                     .attrs = o->attrs,
                                     .in = in,
                                     .n_in = n,
                                     .phase = CVY_PHASE_UPDATE,
                                     .stage = -1};
        CVY_TRY_OUT(cvy_graph_add_node(g, &spec, NULL));
        g->nodes.data[g->nodes.n - 1].bucket = bucket;
    }
out:
    free(in);
    return status;
}

cvy_status cvy_pass_update(struct cvy_graph *g, const struct cvy_update_options *options) {
    const struct cvy_desc hyper_desc = {CVY_F32, CVY_SHAPE(2)};
    cvy_value hyper;
    cut_buckets(g, options);
    place_statistics(g);
    CVY_TRY(cvy_graph_add_value(g, "hyper", &hyper_desc, CVY_VALUE_HYPER, &hyper));
    for (int32_t b = 0; b < g->n_buckets; b++) {
        CVY_TRY(optimise_bucket(g, options, hyper, b));
    }
    return CVY_OK;
}
