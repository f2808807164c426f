/* One training step as the devices of this process saw it: what each did, and when. Recorded once in a run, so that it
   costs nothing elsewhere. */
#ifndef CVY_ENGINE_STEP_TRACE_H
#define CVY_ENGINE_STEP_TRACE_H

#include "engine/session.h"

struct cvy_step_trace_event {
    int device; /* of this process */
    struct cvy_event event;
};

struct cvy_step_trace {                  /* zero-initialised: nothing is recorded */
    int64_t n_seen;                      /* steps that might have been the one */
    int64_t epoch, step;                 /* the one, counted from 0 */
    int64_t start_ns, loaded_ns, end_ns; /* loading began, its images were there, it was done; 0: not yet */
    CVY_VEC(struct cvy_step_trace_event) events; /* device by device; names belong to the session */
    size_t *before;                              /* events of each device that are not the step's */
    bool is_open, was_recording;
};

/* From now on the devices record; no step runs. Local. */
cvy_status cvy_step_trace_begin(struct cvy_step_trace *s, struct cvy_session *session);
/* Keeps what they recorded. Whether the step failed does not matter. Local. */
cvy_status cvy_step_trace_end(struct cvy_step_trace *s, struct cvy_session *session);
void cvy_step_trace_free(struct cvy_step_trace *s);

#endif
