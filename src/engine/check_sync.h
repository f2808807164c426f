/* Do all replicas have the same weights? They must, bit for bit; what breaks that (a fault of memory or of a GPU, a
   bug) would go unnoticed for long. */
#ifndef CVY_ENGINE_CHECK_SYNC_H
#define CVY_ENGINE_CHECK_SYNC_H

#include "engine/session.h"

/* Between two updates: hashes parameters, buffers and the optimiser's state on every device and compares those of
   replicas. CVY_ERR_FAILED, in all processes: the first value, in the order of the network, that differs, and the
   first device whose differs from the first replica's. With strategy dp replicas get the weights at the next step, so
   there is nothing to compare. Collective. */
cvy_status cvy_session_check_sync(struct cvy_session *session);

#endif
