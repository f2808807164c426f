/* Going on from a checkpoint: what it fixes, and what may have changed since it was written. */
#ifndef CVY_ENGINE_RESUME_H
#define CVY_ENGINE_RESUME_H

#include "engine/checkpoint.h"

struct cvy_resume { /* zero-initialised: none */
    char *folder;   /* of the checkpoint; NULL: none */
    struct cvy_card card;
    struct cvy_train_state state;
};

/* Finds and reads the checkpoint that --resume PATH names. CVY_ERR_DATA: it is damaged. One without a manifest is
   taken, with a warning. With CVY_RESUME_AUTO it is the one of the most updates in DIR that is whole by its manifest;
   those passed over are named with the reason. Where there has been none yet, out->folder stays NULL: a new run begins;
   where there are some and none is whole: CVY_ERR_DATA.
   Process 0 looks, hashes and tells; all must be able to read what it takes. Collective. */
cvy_status cvy_resume_open(const char *path, const char *dir, cvy_world *world, const cvy_log_sink *log,
                           struct cvy_resume *out);
void cvy_resume_free(struct cvy_resume *resume);

/* What fixes the bits comes from the checkpoint, never from the devices at hand: S, T and the algorithm. Fixed
   numbers (asked for by the user) that differ are CVY_ERR_USAGE. Local. */
cvy_status cvy_resume_adopt(const struct cvy_resume *resume, bool is_shards_fixed, bool is_threads_fixed,
                            cvy_plan_options *plan);
/* Writes into a state what the open task's steps and images depend on. Local. */
cvy_status cvy_resume_describe(const struct cvy_task *task, struct cvy_train_state *out);
/* Does the checkpoint fit the open task? Another network, other classes or another optimiser are errors, and so is,
   in the middle of an epoch of `n_steps`, what changes its order or size. Any other change is a warning. Local. */
cvy_status cvy_resume_check(const struct cvy_resume *resume, const struct cvy_task *task, int64_t n_steps);

#endif
