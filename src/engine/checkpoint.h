/* Checkpoints: a folder with model.safetensors (weights and the card, see card.h), optimizer.safetensors, state.json
   (where the training stands) and, with --model-ema, ema.safetensors (the average of the weights, and the card). It is
   written under another name, then takes its place in one step: under its own name there is always a whole checkpoint,
   the old one or the new one, whatever happens. */
#ifndef CVY_ENGINE_CHECKPOINT_H
#define CVY_ENGINE_CHECKPOINT_H

#include "engine/card.h"
#include "engine/ema.h"
#include "engine/metrics.h"
#include "engine/scale.h"

/* Where a training stands: what state.json holds. */
struct cvy_train_state {
    int64_t epoch, step;            /* the next step to be done; step 0 at an epoch's border */
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

/* Writes DIR/NAME. DIR exists. `ema` may be zeroed. Collective. */
cvy_status cvy_checkpoint_save(const char *dir, const char *name, cvy_session *session,
                               const struct cvy_card *card, const struct cvy_train_state *state,
                               struct cvy_ema *ema);

/* Clears up behind a run that was killed while it wrote DIR/NAME: removes the half-written one, and puts a whole
   one that had been moved aside back in its place. Local. */
void cvy_checkpoint_tidy(const char *dir, const char *name);

/* Removes DIR/NAME: its own files, then the folder if nothing else is in it. Local. */
void cvy_checkpoint_remove(const char *dir, const char *name);

/* The folder that holds a checkpoint's FILE: PATH itself, else PATH/NAME. CVY_ERR_DATA says what was looked for.
   The caller frees *out. Local. */
cvy_status cvy_checkpoint_find(const char *path, const char *name, const char *file, char **out);
/* Reads FOLDER/state.json. Local. */
cvy_status cvy_checkpoint_state(const char *folder, struct cvy_train_state *out);
/* Brings weights and optimiser back, and the average, unless `ema` is zeroed; the card has been checked. CVY_ERR_USAGE:
   the checkpoint has no average. Collective. */
cvy_status cvy_checkpoint_load(const char *folder, cvy_session *session, const struct cvy_train_state *state,
                               struct cvy_ema *ema);

/* The file behind --weights: PATH itself when it is a file, else a checkpoint's model.safetensors, the best one
   in an output folder. The caller frees *out. Local. */
cvy_status cvy_weights_find(const char *path, char **out);

/* Makes a folder with its parents, unless it is there. Local. */
cvy_status cvy_make_folder(const char *path);

#endif
