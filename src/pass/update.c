/* update: cuts what is summed over shards into buckets, and appends the optimiser, one node per bucket.
   Buckets follow the order in which the backward pass makes gradients, so that the first can be reduced while
   the rest is still computed; the first is small for an early start. Loss, hits and statistics, made in the
   forward pass, lead the first bucket: the loss is known before anything is updated. */
#include "pass/pass.h"

#include <stdlib.h>
#include <string.h>

static int32_t stage_of(const struct cvy_graph *g, const struct cvy_reducible *r) {
    return g->nodes.data[cvy_graph_value(g, r->value)->node].stage;
}

static int32_t last_stage(const struct cvy_graph *g) {
    int32_t last = 0;
    for (size_t i = 0; i < g->nodes.n; i++)
        last = g->nodes.data[i].stage > last ? g->nodes.data[i].stage : last;
    return last;
}

/* The last stage's first, since backward begins there; within a stage in the order of their making. */
static cvy_status order_by_stage(struct cvy_graph *g) {
    struct cvy_reducible *sorted = NULL;
    size_t n = 0;
    CVY_TRY(CVY_ALLOC(sorted, g->reducibles.n));
    for (int32_t stage = last_stage(g); stage >= 0; stage--) {
        for (size_t i = 0; i < g->reducibles.n; i++) {
            if (stage_of(g, &g->reducibles.data[i]) == stage)
                sorted[n++] = g->reducibles.data[i];
        }
    }
    memcpy(g->reducibles.data, sorted, n * sizeof *sorted);
    free(sorted);
    return CVY_OK;
}

/* A bucket ends where it is full, and where a stage ends; every stage has one, be it empty. */
static void cut_buckets(struct cvy_graph *g, const struct cvy_update_options *o) {
    int32_t bucket = -1;
    size_t i = 0;
    for (int32_t stage = last_stage(g); stage >= 0; stage--) {
        size_t filled = 0;
        bucket++;
        for (bool is_first = true; i < g->reducibles.n && stage_of(g, &g->reducibles.data[i]) == stage; i++) {
            struct cvy_reducible *r = &g->reducibles.data[i];
            size_t n = cvy_desc_bytes(&cvy_graph_value(g, r->value)->desc);
            if (r->kind == CVY_REDUCE_GRADIENT && filled > 0 &&
                filled + n > (is_first ? o->first_bucket_bytes : o->bucket_bytes)) {
                bucket++;
                filled = 0;
                is_first = false;
            }
            r->bucket = bucket;
            filled += n;
        }
    }
    g->n_buckets = bucket + 1;
}

void cvy_bucket_stages(const struct cvy_graph *g, int32_t *out) {
    size_t i = 0;
    for (int32_t b = 0; b < g->n_buckets; b++) {
        bool is_empty = i == g->reducibles.n || g->reducibles.data[i].bucket != b;
        int32_t before = b ? out[b - 1] : last_stage(g) + 1;
        out[b] = is_empty ? before - 1 : stage_of(g, &g->reducibles.data[i]);
        while (i < g->reducibles.n && g->reducibles.data[i].bucket == b)
            i++;
    }
}

/* A parameter lives on one stage. */
static cvy_status check_param(const struct cvy_graph *g, const struct cvy_reducible *r) {
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct cvy_node *node = &g->nodes.data[i];
        for (int k = 0; k < node->n_in; k++) {
            if (node->in[k] == r->target && node->stage != stage_of(g, r))
                return CVY_FAIL(CVY_ERR_USAGE,
                                "%s is used by layers of stages %d and %d: put them into one stage",
                                cvy_graph_value(g, r->target)->name, stage_of(g, r), node->stage);
        }
    }
    return CVY_OK;
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

static bool is_of_norm(const struct cvy_graph *g, cvy_value param) {
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct cvy_node *node = &g->nodes.data[i];
        for (int k = 0; (node->op->flags & CVY_OP_NORM) && k < node->n_in; k++) {
            if (node->in[k] == param)
                return true;
        }
    }
    return false;
}

static enum cvy_decay decay_of(const struct cvy_graph *g, const struct cvy_update_options *o,
                               cvy_value param) {
    const char *name = cvy_graph_value(g, param)->name, *dot = strrchr(name, '.');
    if (o->attrs[CVY_DECAY_BIAS] && strcmp(dot ? dot + 1 : name, "bias") == 0)
        return CVY_DECAY_BIAS;
    return o->attrs[CVY_DECAY_NORM] && is_of_norm(g, param) ? CVY_DECAY_NORM : CVY_DECAY_OTHER;
}

static cvy_status optimise_bucket(struct cvy_graph *g, const struct cvy_update_options *o, cvy_value hyper,
                                  int32_t bucket, enum cvy_decay decay) {
    static const char *const suffixes[CVY_N_DECAYS] = {"", ".norm", ".bias"};
    const struct cvy_op *op = o->optimizer;
    cvy_value *in = NULL;
    char *name = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(CVY_ALLOC(in, 1 + g->reducibles.n * (size_t)op->n_in));
    int n = 0;
    int32_t stage = 0;
    in[n++] = hyper;
    for (size_t i = 0; i < g->reducibles.n; i++) {
        const struct cvy_reducible r = g->reducibles.data[i];
        if (r.kind == CVY_REDUCE_GRADIENT && r.bucket == bucket && decay_of(g, o, r.target) == decay) {
            stage = stage_of(g, &r);
            CVY_TRY_OUT(check_param(g, &r));
            in[n] = r.target;
            in[n + 1] = r.value;
            CVY_TRY_OUT(add_states(g, op, r.target, &in[n]));
            n += op->n_in;
        }
    }
    if (n > 1) {
        CVY_TRY_OUT(cvy_pool_printf(&g->pool, &name, "%s.%d%s", op->name, bucket, suffixes[decay]));
        struct cvy_node_spec spec = {.op = op,
                                     .name = name,
                                     .attrs = o->attrs[decay],
                                     .in = in,
                                     .n_in = n,
                                     .phase = CVY_PHASE_UPDATE,
                                     .stage = stage};
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
    CVY_TRY(order_by_stage(g));
    cut_buckets(g, options);
    place_statistics(g);
    CVY_TRY(cvy_graph_add_value(g, "hyper", &hyper_desc, CVY_VALUE_HYPER, &hyper));
    for (int32_t b = 0; b < g->n_buckets; b++) {
        for (enum cvy_decay k = CVY_DECAY_OTHER; k < CVY_N_DECAYS; k++)
            CVY_TRY(optimise_bucket(g, options, hyper, b, k));
    }
    return CVY_OK;
}
