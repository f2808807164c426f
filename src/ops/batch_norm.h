/* Attributes of batch_norm, batch_norm_backward and batch_norm_update: one struct for all three.
   A layer is two nodes: batch_norm in phase FORWARD, and batch_norm_update in phase UPDATE, which moves the
   running statistics by batch_norm's output `stats` once that is summed over the shards. */
#ifndef CVY_OPS_BATCH_NORM_H
#define CVY_OPS_BATCH_NORM_H

#include <stdbool.h>

struct cvy_batch_norm_attrs {
    double eps;
    double momentum; /* of the running statistics; only batch_norm_update computes with it */
    bool training;   /* normalise by the shard's statistics; false: by the running ones */
    bool relu;       /* y = max(y, 0), after the residual; set by fusion */
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

#endif
