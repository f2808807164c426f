/* Checkpoints: a folder with model.safetensors (weights and the card, see card.h), optimizer.safetensors, state.json
   (where the training stands) and, with --model-ema, ema.safetensors (the average of the weights, and the card). It is
   written under another name, manifest.json (size and xxh3 of each file) last, synced to the disk, then takes its
   place in one step: under its own name there is a whole checkpoint, the old or the new one, always. */
#ifndef CVY_ENGINE_CHECKPOINT_H
#define CVY_ENGINE_CHECKPOINT_H

#include "engine/card.h"
#include "engine/ema.h"
#include "engine/train_state.h"

/* What a checkpoint holds, in memory; its room is made at the first time and kept. Zero-initialised: nothing yet. */
struct cvy_snapshot {
    struct cvy_tensors weights, optimizer, average; /* average.data: NULL without --model-ema */
    struct cvy_train_state state;
};
/* Copies it all; `ema` may be zeroed. Released with cvy_snapshot_free, also on failure. Collective. */
cvy_status cvy_snapshot_take(struct cvy_snapshot *snapshot, cvy_session *session,
                             const struct cvy_train_state *state, const struct cvy_ema *ema);
void cvy_snapshot_free(struct cvy_snapshot *snapshot);

/* Writes DIR/NAME. DIR exists. One thread at a time. Local. */
cvy_status cvy_checkpoint_write(const char *dir, const char *name, const struct cvy_card *card,
                                const struct cvy_snapshot *snapshot);

/* Clears up behind a run that was killed while it wrote DIR/NAME: where that is missing or damaged, a whole one that
   had been moved aside, or that was about to take its place, takes it; what is left over is removed. Nobody else may
   read or write there meanwhile. Local. */
void cvy_checkpoint_tidy(const char *dir, const char *name);

/* Removes DIR/NAME: its own files, then the folder if nothing else is in it. Local. */
void cvy_checkpoint_remove(const char *dir, const char *name);

/* The folder that holds a checkpoint's FILE: PATH itself, else PATH/NAME. CVY_ERR_DATA says what was looked for.
   The caller frees *out. Local. */
cvy_status cvy_checkpoint_find(const char *path, const char *name, const char *file, char **out);
/* Reads FOLDER/state.json. Local. */
cvy_status cvy_checkpoint_state(const char *folder, struct cvy_train_state *out);
/* Are all files as they were written? CVY_ERR_DATA names the first that is not. Without a manifest (an earlier version
   of Convoy wrote it) there is nothing to compare: CVY_OK. Local. */
cvy_status cvy_checkpoint_verify(const char *folder, bool *has_manifest);
/* Brings weights and optimiser back, and the average, unless `ema` is zeroed; the card has been checked. CVY_ERR_USAGE:
   the checkpoint has no average. Collective. */
cvy_status cvy_checkpoint_load(const char *folder, cvy_session *session, const struct cvy_train_state *state,
                               struct cvy_ema *ema);

/* The file behind --weights: PATH itself when it is a file, else a checkpoint's model.safetensors, the best one
   in an output folder. The caller frees *out. Local. */
cvy_status cvy_weights_find(const char *path, char **out);

#endif
