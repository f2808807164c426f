/* Attributes of batch_norm, batch_norm_backward and batch_norm_update: one struct for all three.
   A layer is two nodes: batch_norm in phase FORWARD, and batch_norm_update in phase UPDATE, which moves the
   running statistics by batch_norm's output `stats` once that is summed over the shards. */
#ifndef CVY_OPS_BATCH_NORM_H
#define CVY_OPS_BATCH_NORM_H

#include "graph/graph.h"

struct cvy_batch_norm_attrs {
    double eps;
    double momentum; /* of the running statistics; only batch_norm_update computes with it */
    bool training;   /* normalise by the shard's statistics; false: by the running ones */
    bool relu;       /* y = max(y, 0), after the residual; set by fusion */
    bool
        sync; /* running_mean and running_var are those of all shards, and the gradient knows it: see below */
};

enum { /* operands by name, for those who look at them */
       CVY_BATCH_NORM_X,
       CVY_BATCH_NORM_WEIGHT,
       CVY_BATCH_NORM_BIAS,
       CVY_BATCH_NORM_RUNNING_MEAN,
       CVY_BATCH_NORM_RUNNING_VAR,
       CVY_BATCH_NORM_RESIDUAL, /* optional; set by fusion */
};
enum { CVY_BATCH_NORM_Y, CVY_BATCH_NORM_MEAN, CVY_BATCH_NORM_VAR, CVY_BATCH_NORM_STATS, CVY_BATCH_NORM_MASK };

/* ---- over all shards (--sync-bn) -------------------------------------------------------------------
   A training batch_norm becomes (src/pass/sync_bn.c)
     batch_norm_moments    x -> this shard's row: count, mean, M2
     exchange_rows         row -> rows: those of all shards
     batch_norm_merge      rows -> mean, var, stats: merged in the tree over shards by Chan's formula
     batch_norm            sync=true training=false, with that mean and var
   and its gradient
     batch_norm_backward_sums    -> row: sum u, sum u (x - mean), count; and the shard's dweight, dbias
     exchange_rows
     batch_norm_backward_shift   rows -> dx, dresidual.
   The tree (rt/tree.h) over S rows: node of 2^l rows from i = its first half + its second half, cut at S. */

/* Floats of a row: of the forward pass mean [C], M2 [C], values of a channel, images; of the backward pass sum u [C],
   sum u (x - mean) [C], values of a channel; then zeros up to a whole number of cache lines. */
static inline int64_t cvy_batch_norm_row(int64_t channels) { return (2 * channels + 2 + 15) / 16 * 16; }

struct cvy_batch_norm_merge_attrs {
    int64_t channels;
};
enum { CVY_BATCH_NORM_MERGE_MEAN, CVY_BATCH_NORM_MERGE_VAR, CVY_BATCH_NORM_MERGE_STATS };

struct cvy_exchange_rows_attrs {
    int64_t shards; /* S */
};

/* Emits the gradient of a batch_norm with sync=true: gin as in struct cvy_op. */
cvy_status cvy_batch_norm_sync_grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want,
                                    cvy_value dy, cvy_value *gin);

#endif
