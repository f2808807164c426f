/* Which device the others wait for: the one that waits least itself. Of devices that complete a call on return; what a
   device with streams waits for is not seen by the host. */
#ifndef CVY_ENGINE_SLOWEST_H
#define CVY_ENGINE_SLOWEST_H

#include "engine/session.h"

struct cvy_slowest {
    int32_t device;            /* of the run; -1: not known */
    int rank;                  /* its process */
    double waited_s, loaded_s; /* by that device for others, by its process for images */
    double most_s;             /* that any device waited */
};

/* Waits count from here. Local. */
void cvy_session_forget_waits(struct cvy_session *session);
/* loaded_s: what this process waited for images since then. The same in all processes. Collective. */
cvy_status cvy_session_slowest(struct cvy_session *session, double loaded_s, struct cvy_slowest *out);

#endif
