/* The timeline recorder: a ring of events per device, off unless asked for, and the ends of its instructions. Written
   by the device's thread alone; read when no step runs. tools/draw_timeline draws what cvy_timeline_export writes. */
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

/* Where a device's events stand in a trace. */
struct cvy_track {
    int process;   /* "pid" */
    int tid, talk; /* "tid" of what computes, and of what talks with other devices: may be the same */
};

/* Appends an event that names a track. */
cvy_status cvy_timeline_name(int process, int tid, const char *label, json_t *array);
/* Appends the events to `array`, in the form of Chrome's trace viewer and Perfetto: "ts" and "dur" are in microseconds,
   from origin_ns on; "cat" is an operator's phase, or "instruction"; "args" have the step, the kind (event_kind.h), and
   shard, bucket and layer where there are any. */
cvy_status cvy_timeline_export(const struct cvy_timeline *timeline, const struct cvy_track *track,
                               int64_t step, int64_t origin_ns, json_t *array);
/* Appends one event that is no device's, such as the wait for a batch. */
cvy_status cvy_timeline_span(const char *what, const struct cvy_track *track, int64_t step,
                             const int64_t ns[2], int64_t origin_ns, json_t *array);

/* ---- spans: when each instruction of the training schedule began and ended, in the newest steps -------------- */

/* Much less than events: no operators, and one call of the clock for each instruction. Written by the device's thread
   alone; read when no step runs. Zero-initialised: off. */
struct cvy_spans {
    int64_t *ns;            /* cap steps of n_instr ends each, before them the step's begin; NULL: off */
    size_t n_instr, cap, n; /* n: steps ever written; the newest min(n, cap) are there */
    bool is_on;
};

cvy_status cvy_spans_open(struct cvy_spans *spans, size_t n_instr, size_t cap);
void cvy_spans_close(struct cvy_spans *spans);
/* The place for one more step, 1 + n_instr numbers; NULL: it is not recorded. */
int64_t *cvy_spans_begin(struct cvy_spans *spans);
/* Step i of those that are there, oldest first; NULL beyond. */
const int64_t *cvy_spans_get(const struct cvy_spans *spans, size_t i);

#endif
