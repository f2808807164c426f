/* One instruction in the hands of the executor, and what its files share. */
#ifndef CVY_ENGINE_STEP_H
#define CVY_ENGINE_STEP_H

#include "engine/plan.h"

struct cvy_step {
    struct cvy_worker *w;
    struct cvy_work *work;
    const struct cvy_backend *backend;
    const struct cvy_instr *i;
};

/* Images of the instruction's shard. */
int64_t cvy_step_images(const struct cvy_step *s);
/* A bucket of one of the worker's sums, on its device. */
float *cvy_step_bucket(const struct cvy_worker *w, int32_t bucket, int32_t sum);

/* Gradients were not finite: this update does nothing. */
bool cvy_update_is_skipped(const struct cvy_step *s);

/* ---- repeat.c: what the device need not be told again -------------------------------------------------- */

/* How many instructions from s->i on, of n_left, enqueue what they will enqueue again in another step; 0: the first
   does not, or nobody gains by it. A wait is the first one's alone, a record the last one's. */
size_t cvy_repeat_length(const struct cvy_step *s, size_t n_left);
/* Enqueues them, through `enqueue` or as the device remembers it; without their wait and their record. */
cvy_status cvy_repeat(const struct cvy_step *s, size_t n, cvy_status (*enqueue)(const struct cvy_step *s));

/* ---- rows.c: what shards exchange ---------------------------------------------------------------------- */

/* The rows of all shards that the instruction's part ends with: where they are, and their bytes. */
cvy_status cvy_rows_find(const struct cvy_step *s, char **at, size_t *n_bytes);
/* Zeros the rows that are not this device's to write, and those of empty shards. */
cvy_status cvy_rows_clear(const struct cvy_step *s);

/* ---- talk.c: instructions that talk with other devices ------------------------------------------------- */

/* Send, recv, reduce, wait, broadcast, exchange. Done on return; on a device with streams enqueued, a reduce as a
   whole, so that there is nothing left to `wait` for but its event. */
cvy_status cvy_talk(const struct cvy_step *s);
/* What a stage has, to all; at once, by the host. */
cvy_status cvy_talk_bytes(const struct cvy_step *s, int32_t stage, void *bytes, size_t n, const char *name);
/* ... a number. */
cvy_status cvy_talk_number(const struct cvy_step *s, int32_t stage, float *number, const char *name);

/* ---- scale.c: FINITE ----------------------------------------------------------------------------------- */

cvy_status cvy_step_finite(const struct cvy_step *s);

/* ---- clip.c: CLIP -------------------------------------------------------------------------------------- */

cvy_status cvy_step_clip(const struct cvy_step *s);

#endif
