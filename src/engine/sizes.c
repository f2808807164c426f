/* sizes: what a session has compiled. Segments are there for the sizes of shards that have been met, or announced;
   those of training all at once give way to those of another image size. */
#include "engine/session.h"

struct sizes {
    int64_t n;
    bool is_training, is_split;
};

static cvy_status compile_sizes(struct cvy_worker *worker, const struct sizes *sizes) {
    int64_t n_shards = worker->program->n_shards;
    for (int64_t s = 0; s < n_shards; s++) {
        int64_t size = cvy_shard_size(sizes->n, n_shards, s);
        if (size > 0)
            CVY_TRY(cvy_compile_size(worker, size, sizes->is_training));
    }
    return CVY_OK;
}

static cvy_status prepare_task(struct cvy_worker *worker, void *argument) {
    const struct sizes *sizes = argument;
    CVY_TRY(compile_sizes(worker, sizes));
    return cvy_execute_prepare(worker, sizes->is_split);
}

static cvy_status announce_task(struct cvy_worker *worker, void *argument) {
    CVY_TRY(compile_sizes(worker, argument));
    return cvy_program_prepare(worker->program, worker->device);
}

cvy_status cvy_plan_announce(struct cvy_plan *plan, int64_t n, bool is_training) {
    struct sizes sizes = {n, is_training, false};
    return cvy_team_run(&plan->team, announce_task, &sizes);
}

static bool is_prepared(const struct cvy_session *session, const struct sizes *sizes) {
    const struct cvy_worker *w = &session->plan->team.workers[0];
    int64_t low = sizes->n / w->program->n_shards;
    int64_t high = low + (sizes->n % w->program->n_shards != 0);
    for (int64_t size = low; size <= high; size++) {
        if (size > 0 && !cvy_program_segment(w->program, CVY_PHASE_FORWARD, sizes->is_training, 0, size))
            return false;
    }
    return w->arena && (w->is_split || !sizes->is_split);
}

cvy_status cvy_session_prepare(struct cvy_session *session, int64_t n, bool is_training, bool is_split) {
    struct sizes sizes = {n, is_training, is_split};
    if (is_training && !session->plan->train)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "this plan is for inference: name an optimizer in its options to train");
    return is_prepared(session, &sizes) ? CVY_OK : cvy_team_run(&session->plan->team, prepare_task, &sizes);
}

/* What the devices were told of the old segments is forgotten at the next preparation. */
static cvy_status drop_task(struct cvy_worker *worker, void *argument) {
    (void)argument;
    cvy_program_drop_training(worker->program);
    return CVY_OK;
}

cvy_status cvy_session_resize(struct cvy_session *session, const cvy_graph *graph, const int64_t n[2]) {
    if (session->split != CVY_SPLIT_NONE || session->under_way.n_done < session->under_way.n)
        return CVY_FAIL(CVY_ERR_USAGE, "the images' size may change between two updates only");
    CVY_TRY(cvy_plan_resize(session->plan, graph));
    CVY_TRY(cvy_team_run(&session->plan->team, drop_task, NULL));
    for (int i = 0; i < 2; i++)
        if (n[i] > 0)
            CVY_TRY(cvy_session_prepare(session, n[i], true, false));
    return cvy_session_spread(
        session); /* kernels of this size may read weights in layouts that none did before */
}
