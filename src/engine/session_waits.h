/* For tests of waits: one session after the other on one plan, each running one kind of schedule, whose waits can be
   taken out in between. */
#ifndef CVY_ENGINE_SESSION_WAITS_H
#define CVY_ENGINE_SESSION_WAITS_H

#include "engine/session_matrix.h"

/* Of the waits of a schedule every so many-th is taken out. Sanitizers make a run as slow as ten, and look at memory
   and threads: they see a few of each schedule. */
#ifdef CVY_SANITIZED
enum { EVERY_WAIT = 4 };
#else
enum { EVERY_WAIT = 1 };
#endif

struct rig {
    cvy_plan *plan;
    struct data data;
    cvy_batch batch;
};

static inline void open_rig(struct rig *rig, const struct setup *setup, const char *backend,
                            int64_t accumulate, bool sync_bn, double timeout_s) {
    cvy_graph *g = make_graph();
    cvy_plan_options options = options_of(setup, backend, 1);
    options.timeout_s = timeout_s;
    options.accumulate = accumulate;
    options.sync_bn = sync_bn;
    assert_ok(cvy_plan_new(g, &options, &rig->plan));
    cvy_graph_free(g);
    draw(&rig->data, 0);
    rig->batch = batch_of(&rig->data, BATCH);
}

/* What a schedule is run by; the first failure. */
typedef cvy_status (*runner)(cvy_session *session, cvy_batch *batch);

static inline cvy_status run_train(cvy_session *session, cvy_batch *batch) {
    return cvy_step(session, batch);
}

/* The first batch of an update of two: its sum is needed by the second's. */
static inline cvy_status run_accumulate(cvy_session *session, cvy_batch *batch) {
    batch->n_update = 2 * batch->n;
    return cvy_step(session, batch);
}

static inline cvy_status run_split(cvy_session *session, cvy_batch *batch) {
    batch->n_update = 2 * batch->n;
    CVY_TRY(cvy_forward(session, batch));
    return cvy_backward(session);
}

static inline cvy_status run_update(cvy_session *session, cvy_batch *batch) {
    CVY_TRY(cvy_forward(session, batch));
    CVY_TRY(cvy_backward(session));
    return cvy_update(session);
}

/* Nothing comes back to the host, whose waits would stand for events. */
static inline cvy_status run_evaluate(cvy_session *session, cvy_batch *batch) {
    return cvy_evaluate(session, batch, NULL, NULL, NULL);
}

static const struct {
    const char *name; /* of the schedule */
    size_t offset;
    runner run;
} runs[] = {
    {"train", offsetof(struct cvy_program, train), run_train},
    {"accumulate", offsetof(struct cvy_program, accumulate), run_accumulate},
    {"forward", offsetof(struct cvy_program, forward), run_split},
    {"backward", offsetof(struct cvy_program, backward), run_split},
    {"update", offsetof(struct cvy_program, update), run_update},
    {"evaluate", offsetof(struct cvy_program, evaluate), run_evaluate},
};
enum { N_RUNS = sizeof runs / sizeof *runs };

static inline cvy_status run_once(struct rig *rig, runner run) {
    cvy_session *session;
    cvy_batch batch = rig->batch;
    cvy_status status = cvy_session_new(rig->plan, &session);
    if (status != CVY_OK)
        return status;
    struct cvy_error error;
    status = run(session, &batch);
    cvy_error_save(&error, status);
    cvy_session_free(session);
    return status == CVY_OK ? CVY_OK : cvy_error_restore(&error);
}

#endif
