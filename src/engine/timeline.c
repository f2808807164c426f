/* The timeline recorder: see timeline.h. */
#include "engine/timeline.h"

#include "base/mem.h"

#include <stdlib.h>

cvy_status cvy_timeline_open(struct cvy_timeline *timeline, size_t cap) {
    CVY_TRY(CVY_ALLOC(timeline->ring, cap));
    timeline->cap = cap;
    timeline->n = 0;
    return CVY_OK;
}

void cvy_timeline_close(struct cvy_timeline *timeline) {
    free(timeline->ring);
    *timeline = (struct cvy_timeline){0};
}

void cvy_timeline_clear(struct cvy_timeline *timeline) { timeline->n = 0; }

void cvy_timeline_add(struct cvy_timeline *timeline, const struct cvy_event *event) {
    if (timeline->ring)
        timeline->ring[timeline->n++ % timeline->cap] = *event;
}

const struct cvy_event *cvy_timeline_get(const struct cvy_timeline *timeline, size_t i) {
    size_t here = timeline->n < timeline->cap ? timeline->n : timeline->cap;
    return i < here ? &timeline->ring[(timeline->n - here + i) % timeline->cap] : NULL;
}
