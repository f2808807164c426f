/* What kind of work an event of a timeline is: one table for the report, tools/draw_timeline (through "kind" in a
   trace) and `convoy bench`. */
#ifndef CVY_ENGINE_EVENT_KIND_H
#define CVY_ENGINE_EVENT_KIND_H

#include "engine/timeline.h"

enum cvy_event_kind {
    CVY_KIND_FORWARD,
    CVY_KIND_BACKWARD,
    CVY_KIND_UPDATE,
    CVY_KIND_REFRESH,    /* packed copies of parameters */
    CVY_KIND_ADD,        /* sums of shards, of batches */
    CVY_KIND_PARAMETERS, /* from the master to the others */
    CVY_KIND_REDUCE,     /* all-reduce: waiting and adding */
    CVY_KIND_SEND,
    CVY_KIND_IDLE, /* waiting for another device */
    CVY_KIND_HOST, /* images, results, handing in: little of it takes time that could be seen */
    CVY_N_KINDS,
};

/* "forward", "backward", …: as traces have it. */
extern const char *const cvy_kind_names[CVY_N_KINDS];

/* Of a RUN its phase decides. */
enum cvy_event_kind cvy_kind_of_instr(enum cvy_instr_kind kind, enum cvy_phase phase);
enum cvy_event_kind cvy_kind_of_event(const struct cvy_event *event);
/* Does it talk with other devices, or wait for them? */
bool cvy_kind_is_talk(enum cvy_event_kind kind);

#endif
