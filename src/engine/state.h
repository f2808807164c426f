/* What the trainer needs of a plan and a session beyond the public interface: the facts that a checkpoint
   must keep so that a resumed run gives the same bits, and the optimiser's state. */
#ifndef CVY_ENGINE_STATE_H
#define CVY_ENGINE_STATE_H

#include "graph/safetensors.h"

/* What the plan settled on. The texts belong to the plan. */
struct cvy_plan_facts {
    const char *devices;  /* of each process, short form: "cpu:0-1" */
    const char *strategy; /* "ddp" */
    const char *backend;  /* "cpu" */
    const char
        *conv_algo; /* "auto": the rule; the table of algorithms follows from it and the largest shard */
    int n_devices;  /* of all processes */
    int n_processes;
    int64_t shards;      /* S */
    int threads;         /* T */
    bool is_fast_reduce; /* sums depend on n_devices */
    size_t arena_bytes;  /* largest over the devices */
};
/* Local. */
void cvy_plan_facts(const cvy_plan *plan, struct cvy_plan_facts *out);

/* cvy_load_weights of all but these n names, which the file may lack or have in another shape. Collective. */
cvy_status cvy_session_load_body(cvy_session *session, const char *path, const char *const *head, size_t n);

/* The optimiser's state values (momentum and the like) as plain safetensors named "PARAMETER.STATE", and the
   number of updates done so far. Loading refuses a missing, unknown or misshapen tensor by name. Collective. */
cvy_status cvy_session_save_optimizer(cvy_session *session, const char *path);
cvy_status cvy_session_load_optimizer(cvy_session *session, const char *path, int64_t n_updates);

/* Updates done since the beginning of the training: restored with the optimiser's state. Local. */
int64_t cvy_session_updates(const cvy_session *session);

/* Seconds that opening the session spent on the first touch of the arena's pages; largest over devices. Local. */
double cvy_session_touch_s(const cvy_session *session);

#endif
