/* state.json of a checkpoint: where a training stands, and what its steps depend on. */
#ifndef CVY_ENGINE_TRAIN_STATE_H
#define CVY_ENGINE_TRAIN_STATE_H

#include "engine/metrics.h"
#include "engine/scale.h"

struct cvy_train_state {
    int64_t epoch, step;            /* the next step to be done; with all of the epoch done, its evaluation */
    int64_t n_updates;              /* done so far */
    int64_t batch_size, accumulate; /* a step is one update: so many batches of so many images */
    uint64_t seed;
    bool shuffle, sync_bn, fast_reduce;
    char amp[8];           /* "none", "bf16", "fp16" */
    char freeze[4096];     /* patterns of the parameters that are not trained; "": none */
    int64_t n_images;      /* of the training set */
    char data[4200];       /* its spec: room for the longest path */
    char preparation[384]; /* of its images, as text */
    char optimizer[32];
    struct cvy_tally train;      /* of the steps of this epoch that are done */
    double train_s;              /* and their time */
    struct cvy_loss_scale scale; /* of --amp fp16 */
    int64_t n_averaged;          /* of --model-ema */
    int64_t best_epoch;          /* -1: none yet */
    int64_t best_top1;           /* images right in that epoch's evaluation */
};

/* Writes the file, whole or not at all. Local. */
cvy_status cvy_train_state_write(const char *path, const struct cvy_train_state *state);
/* CVY_ERR_DATA: it is not as a checkpoint writes it. Local. */
cvy_status cvy_train_state_read(const char *path, struct cvy_train_state *out);

#endif
