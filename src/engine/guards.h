/* What watches over a training: --on-nan skip, --check-sync. */
#ifndef CVY_ENGINE_GUARDS_H
#define CVY_ENGINE_GUARDS_H

#include "engine/trainer.h"

/* After an update is counted, before anything is saved. CVY_ERR_NAN: too many updates in a row were left out;
   CVY_ERR_FAILED: replicas differ. Collective. */
cvy_status cvy_guards_step(struct cvy_trainer *trainer);
/* At the begin of an epoch. Local. */
void cvy_guards_begin(struct cvy_trainer *trainer);
/* At the end of an epoch, before evaluation: tells how many of its updates --on-nan skip has left out, and, where there
   are several processes, which one the others waited for. Collective. */
cvy_status cvy_guards_epoch(struct cvy_trainer *trainer);

#endif
