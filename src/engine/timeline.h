/* The timeline recorder: a ring of events per device, off unless asked for. Written by the device's thread
   alone; read when no step runs. */
#ifndef CVY_ENGINE_TIMELINE_H
#define CVY_ENGINE_TIMELINE_H

#include "base/status.h"
#include "rt/program.h"

struct cvy_event {
    const char *what; /* the operator's kind, or the instruction's */
    const char *name; /* the layer, or NULL */
    int32_t shard, bucket;
    int64_t start_ns, end_ns;
};

struct cvy_timeline {
    struct cvy_event *ring; /* NULL: off */
    size_t cap, n;          /* n: ever written; the newest min(n, cap) are there */
};

cvy_status cvy_timeline_open(struct cvy_timeline *timeline, size_t cap);
void cvy_timeline_close(struct cvy_timeline *timeline);
void cvy_timeline_clear(struct cvy_timeline *timeline);
/* Does nothing when off. */
void cvy_timeline_add(struct cvy_timeline *timeline, const struct cvy_event *event);
/* Event i of those that are there, oldest first; NULL beyond. */
const struct cvy_event *cvy_timeline_get(const struct cvy_timeline *timeline, size_t i);

#endif
