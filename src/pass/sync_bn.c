/* sync_bn: every training batch_norm normalises over all shards of the batch: moments of the shard, an exchange of
   rows, the merged statistics, then batch_norm with these (see ops/batch_norm.h). The statistic that moves the running
   values is the merged one. */
#include "ops/batch_norm.h"
#include "pass/pass.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct cvy_batch_norm_attrs norm_attrs;

struct rewriter {
    const struct cvy_graph *g;
    struct cvy_graph *to;
    cvy_value *map;
    int64_t n_shards;
};

/* A node of batch-norm layer `of`, called "LAYER.WHAT". */
static cvy_status add(const struct rewriter *r, const struct cvy_node *of, const char *op, const char *what,
                      const void *attrs, const cvy_value *in, int n_in, cvy_value *out) {
    char *name = NULL;
    CVY_TRY(cvy_pool_printf(&r->to->pool, &name, what ? "%s.%s" : "%s", of->name, what));
    struct cvy_node_spec spec = {.op = cvy_op_find(op),
                                 .name = name,
                                 .attrs = attrs,
                                 .in = in,
                                 .n_in = n_in,
                                 .phase = of->phase,
                                 .stage = of->stage,
                                 .id = of->id};
    return cvy_graph_add_node(r->to, &spec, out);
}

static cvy_status rewrite(struct rewriter *r, const struct cvy_node *norm) {
    const struct cvy_exchange_rows_attrs exchange = {.shards = r->n_shards};
    cvy_value in[8] = {0}, out[CVY_MAX_OUT], merge_in[2], merged[3];
    assert(norm->n_in > CVY_BATCH_NORM_RUNNING_VAR && norm->n_in <= (int)(sizeof in / sizeof *in));
    for (int k = 0; k < norm->n_in; k++)
        in[k] = norm->in[k] == CVY_NONE ? CVY_NONE : r->map[norm->in[k]];
    const struct cvy_batch_norm_merge_attrs merge = {
        .channels = cvy_graph_value(r->to, in[CVY_BATCH_NORM_X])->desc.shape.dim[1]};
    norm_attrs attrs = *(const norm_attrs *)norm->attrs;
    attrs.training = false;
    attrs.sync = true;
    CVY_TRY(add(r, norm, "batch_norm_moments", "moments", NULL, in, 1, &merge_in[1]));
    CVY_TRY(add(r, norm, "exchange_rows", "rows", &exchange, &merge_in[1], 1, &merge_in[0]));
    CVY_TRY(add(r, norm, "batch_norm_merge", "batch", &merge, merge_in, 2, merged));
    in[CVY_BATCH_NORM_RUNNING_MEAN] = merged[CVY_BATCH_NORM_MERGE_MEAN];
    in[CVY_BATCH_NORM_RUNNING_VAR] = merged[CVY_BATCH_NORM_MERGE_VAR];
    CVY_TRY(add(r, norm, "batch_norm", NULL, &attrs, in, norm->n_in, out));
    for (int o = 0; o < norm->n_out; o++)
        r->map[norm->out[o]] = o == CVY_BATCH_NORM_STATS ? merged[CVY_BATCH_NORM_MERGE_STATS] : out[o];
    return CVY_OK;
}

static bool is_training_norm(const struct cvy_node *node) {
    return strcmp(node->op->name, "batch_norm") == 0 && ((const norm_attrs *)node->attrs)->training;
}

cvy_status cvy_pass_sync_bn(const struct cvy_graph *g, int64_t n_shards, struct cvy_graph **out) {
    struct rewriter r = {.g = g, .n_shards = n_shards};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_graph_copy_roots(g, &r.to, &r.map));
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct cvy_node *node = &g->nodes.data[i];
        if (is_training_norm(node))
            CVY_TRY_OUT(rewrite(&r, node));
        else
            CVY_TRY_OUT(cvy_graph_copy_node(r.to, g, node, r.map));
    }
    CVY_TRY_OUT(cvy_graph_copy_tables(r.to, g, r.map));
    *out = r.to;
    r.to = NULL;
out:
    cvy_graph_free(r.to);
    free(r.map);
    return status;
}
