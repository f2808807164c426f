/* The timeline recorder: a ring of events per device, off unless asked for. Written by the device's thread
   alone; read when no step runs. tools/draw_timeline draws what cvy_timeline_export writes. */
#ifndef CVY_ENGINE_TIMELINE_H
#define CVY_ENGINE_TIMELINE_H

#include "base/status.h"
#include "rt/program.h"

#include <jansson.h>

struct cvy_event {
    const char *what;     /* the operator's kind, or the instruction's */
    const char *name;     /* the layer; NULL: an instruction */
    enum cvy_phase phase; /* of an operator, a send or a recv */
    int32_t shard, bucket;
    int64_t start_ns, end_ns; /* of a device with streams: of its being enqueued */
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

/* Appends the events to `array`, in the form of Chrome's trace viewer and Perfetto: "tid" is the device, named `label`
   there; "ts" and "dur" are in microseconds, from origin_ns on; "cat" is an operator's phase, or "instruction"; "args"
   have the step, and shard, bucket and layer where there are any. */
cvy_status cvy_timeline_export(const struct cvy_timeline *timeline, int device, const char *label,
                               int64_t step, int64_t origin_ns, json_t *array);

#endif
