/* See step_trace.h. A recorder that is on already (the plan's `timeline`) stays on, and keeps its own events. */
#include "engine/step_trace.h"

#include "base/mem.h"
#include "base/thread.h"

#include <stdlib.h>

enum { MOST_EVENTS = 1 << 15 }; /* of a device; of a longer step its end is kept */

cvy_status cvy_step_trace_begin(struct cvy_step_trace *s, struct cvy_session *session) {
    struct cvy_team *team = &session->plan->team;
    CVY_TRY(CVY_ALLOC(s->before, (size_t)team->n));
    s->is_open = true;
    s->was_recording = team->workers[0].timeline.ring;
    for (int k = 0; k < team->n; k++) {
        if (!s->was_recording)
            CVY_TRY(cvy_timeline_open(&team->workers[k].timeline, MOST_EVENTS));
        s->before[k] = team->workers[k].timeline.n;
    }
    return CVY_OK;
}

cvy_status cvy_step_trace_end(struct cvy_step_trace *s, struct cvy_session *session) {
    struct cvy_team *team = &session->plan->team;
    cvy_status status = CVY_OK;
    s->is_open = false;
    s->end_ns = cvy_now_ns();
    for (int k = 0; k < team->n; k++) {
        struct cvy_timeline *timeline = &team->workers[k].timeline;
        const size_t here = timeline->n < timeline->cap ? timeline->n : timeline->cap;
        const size_t n_new = timeline->n - s->before[k];
        for (size_t i = n_new < here ? here - n_new : 0; i < here && status == CVY_OK; i++)
            status =
                cvy_vec_push(&s->events, (struct cvy_step_trace_event){k, *cvy_timeline_get(timeline, i)});
        if (!s->was_recording)
            cvy_timeline_close(timeline);
    }
    return status;
}

void cvy_step_trace_free(struct cvy_step_trace *s) {
    cvy_vec_free(&s->events);
    free(s->before);
    *s = (struct cvy_step_trace){0};
}
