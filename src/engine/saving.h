/* What a trainer saves as it goes, and how it stops. */
#ifndef CVY_ENGINE_SAVING_H
#define CVY_ENGINE_SAVING_H

#include "engine/trainer.h"

/* Begins to write the checkpoint last/, and best/ if it is that, into the output folder; without one nothing. Fails
   when the one before did. Collective. */
cvy_status cvy_trainer_checkpoint(struct cvy_trainer *trainer, bool is_best);
/* Waits until it is on the disk, and fails when it is not. Collective. */
cvy_status cvy_trainer_settle(struct cvy_trainer *trainer);
/* Between two steps of an epoch: stops where that was asked for, else writes last/ where --checkpoint-every says so.
   Collective. */
cvy_status cvy_trainer_between_steps(struct cvy_trainer *trainer);
/* Whichever process was told to stop: all stop after the same step, with a checkpoint: CVY_INTERRUPTED, with the
   command that goes on. A checkpoint that could not be written stops all, too. Collective. */
cvy_status cvy_trainer_heed_interrupts(struct cvy_trainer *trainer);

#endif
