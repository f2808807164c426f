/* --profile: where the time of a training run goes. While it trains, the devices keep when each instruction of their
   newest steps ended, and the trainer how long steps waited for images; of a few steps every operator is kept. At the
   end rank 0 writes two files: trace.json, those few steps for ui.perfetto.dev, and profile.json,
   the means of what each instruction took. */
#ifndef CVY_ENGINE_PROFILE_H
#define CVY_ENGINE_PROFILE_H

#include "engine/session.h"
#include "engine/task.h"

#include <jansson.h>

struct cvy_profile_sum { /* of an operator on a device, in the traced steps */
    int device;          /* of this process */
    const char *what;    /* owned by the table of operators */
    double us;
    int64_t n_calls;
};

struct cvy_profile {                /* zero-initialised: off */
    struct cvy_session *session;    /* NULL: off */
    int64_t n_seen, n_warm, n_full; /* updates so far; that do not count; of an epoch, without a ragged one */
    int64_t n_counted, step_ns, wait_ns, span_ns;         /* steps that count; sums over them */
    int64_t begun_ns, lap_ns, step_wait_ns, step_span_ns; /* of the step under way */
    bool is_counted, is_traced;                           /* the step under way */
    int64_t n_traced, origin_ns;                          /* steps traced; when the first of them began */
    json_t *trace;                                        /* their events */
    CVY_VEC(struct cvy_profile_sum) sums;
};

/* Begins to record. An epoch has n_full whole updates; n_left are still to come in this run. Local. */
cvy_status cvy_profile_open(struct cvy_profile *profile, struct cvy_session *session, int64_t n_full,
                            int64_t n_left);
/* An update begins, number `step` of its epoch: what follows is the wait for its first batch. No step runs. Local. */
cvy_status cvy_profile_begin(struct cvy_profile *profile, int64_t step);
/* A batch is there; it has been through cvy_step. Local. */
cvy_status cvy_profile_loaded(struct cvy_profile *profile);
cvy_status cvy_profile_stepped(struct cvy_profile *profile);
/* All of the update is done, what the host does after it too. Local. */
cvy_status cvy_profile_end(struct cvy_profile *profile);

/* All that this process knows, as one object; the caller's. Local. */
cvy_status cvy_profile_part(const struct cvy_profile *profile, json_t **out);
/* Gathers the parts on rank 0, which writes dir/trace.json and dir/profile.json. `task` says what was run.
   Collective. */
cvy_status cvy_profile_save(const struct cvy_profile *profile, const struct cvy_task *task, const char *dir);
/* Before the session is freed. */
void cvy_profile_close(struct cvy_profile *profile);

#endif
