/* Sessions: steps, split calls, evaluation. A call hands one schedule to all workers and waits for them. */
#include "engine/session.h"
#include "engine/world.h"

#include "base/cgroup.h"
#include "graph/init.h"
#include "rt/tree.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* ---- opening ----------------------------------------------------------------------------------------- */

static cvy_status open_task(struct cvy_worker *worker, void *argument) {
    (void)argument;
    CVY_TRY(cvy_execute_prepare(worker, false));
    if (worker->plan->options.timeline && !worker->timeline.ring)
        CVY_TRY(cvy_timeline_open(&worker->timeline, 1 << 17));
    return CVY_OK;
}

/* All stages together have everything. */
static cvy_status list_stored(struct cvy_session *session) {
    for (int i = 0; i < session->plan->mesh.pipe; i++) {
        const struct cvy_store *store = &session->plan->stores[i];
        for (size_t k = 0; k < store->values.n; k++)
            CVY_TRY(cvy_vec_push(&session->stored, &store->values.data[k]));
        if (store->staging_bytes > session->staging_bytes)
            session->staging_bytes = store->staging_bytes;
    }
    return CVY_OK;
}

static cvy_status initialise(struct cvy_session *session) {
    void *host = NULL, *own = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(list_stored(session));
    CVY_TRY_OUT(cvy_session_borrow(session, &host, &own));
    for (size_t i = 0; i < session->stored.n; i++) {
        const struct cvy_stored *s = session->stored.data[i];
        bool is_drawn =
            s->desc.dtype == CVY_F32 && (s->kind == CVY_VALUE_PARAM || s->kind == CVY_VALUE_BUFFER);
        if (!is_drawn)
            continue; /* states, hypers and counters start at zero, as the arena does */
        CVY_TRY_OUT(cvy_init_fill(session->plan->options.seed, s->name, &s->desc, &s->init, host));
        CVY_TRY_OUT(cvy_session_write(session, s->name, host));
    }
    CVY_TRY_OUT(cvy_session_spread(session));
out:
    free(own);
    return status;
}

cvy_status cvy_session_new(cvy_plan *plan, cvy_session **out) {
    struct cvy_session *session = NULL;
    if (plan->is_used)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "this plan has a session already: free it first, or make another plan");
    CVY_TRY(cvy_world_meet_failure(plan->options.world, cvy_plan_check_free(plan, cvy_memory_free("")),
                                   "memory"));
    CVY_TRY(cvy_plan_connect(plan));
    CVY_TRY(CVY_ALLOC(session, 1));
    session->plan = plan;
    session->lr = 0.1;
    if (plan->train && plan->low == CVY_F16)
        session->scale = cvy_loss_scale_begin();
    cvy_status status = cvy_team_run(&plan->team, open_task, NULL);
    if (status == CVY_OK)
        status = initialise(session);
    if (status != CVY_OK) {
        cvy_vec_free(&session->stored);
        free(session);
        return status;
    }
    plan->is_used = true;
    *out = session;
    return CVY_OK;
}

static cvy_status release_task(struct cvy_worker *worker, void *argument) {
    (void)argument;
    cvy_execute_release(worker);
    return CVY_OK;
}

void cvy_session_free(cvy_session *session) {
    if (!session)
        return;
    struct cvy_error error; /* a device that failed fails here too: the reason stays the first */
    cvy_error_save(&error, CVY_OK);
    (void)cvy_team_run(&session->plan->team, release_task, NULL);
    (void)cvy_error_restore(&error);
    session->plan->is_used = false;
    cvy_vec_free(&session->stored);
    free(session);
}

/* ---- running ----------------------------------------------------------------------------------------- */

enum which { TRAIN, ACCUMULATE, FORWARD, BACKWARD, UPDATE, EVALUATE, START };

struct run {
    enum which which;
    struct cvy_work *work;
};

static cvy_status run_task(struct cvy_worker *worker, void *argument) {
    const struct run *run = argument;
    const struct cvy_program *p = worker->program;
    const cvy_schedule *const schedules[] = {
        [TRAIN] = &p->train,       [ACCUMULATE] = &p->accumulate, [FORWARD] = &p->forward,
        [BACKWARD] = &p->backward, [UPDATE] = &p->update,         [EVALUATE] = &p->evaluate,
        [START] = &p->start};
    return cvy_execute(worker, schedules[run->which], run->work);
}

static cvy_status diagnose_task(struct cvy_worker *worker, void *argument) {
    return cvy_diagnose(worker, argument);
}

static cvy_status run_schedule(struct cvy_session *session, enum which which, struct cvy_work *work) {
    struct run run = {which, work};
    return cvy_team_run(&session->plan->team, run_task, &run);
}

/* A loss that is not finite stopped the step before any update: say where it comes from. */
static cvy_status explain_failure(struct cvy_session *session, cvy_status status, struct cvy_work *work) {
    if (status != CVY_ERR_NAN || !work->batch)
        return status;
    struct cvy_error error;
    cvy_error_save(&error, status);
    cvy_status found = cvy_team_run(&session->plan->team, diagnose_task, work);
    found = cvy_world_share_failure(session->plan->options.world, found, "what made the loss");
    return found == CVY_OK ? cvy_error_restore(&error) : found;
}

/* The update was left out: why, as far as a process knows. */
static cvy_status tell_skipped(struct cvy_session *session, struct cvy_work *work) {
    const struct cvy_plan *plan = session->plan;
    if (!plan->skips || !session->scale.is_skipped)
        return CVY_OK;
    cvy_status found = cvy_team_run(&session->plan->team, diagnose_task, work);
    if (found == CVY_ERR_NAN)
        cvy_log(&plan->options.log, CVY_LOG_WARNING, "update left out: %s", cvy_error());
    else if (found == CVY_OK && isfinite(session->metrics.loss) && cvy_world_rank(plan->options.world) == 0)
        cvy_log(&plan->options.log, CVY_LOG_WARNING,
                "update left out: step %" PRIu64 ": a gradient is not finite, though the loss is",
                work->step);
    return found == CVY_ERR_NAN ? CVY_OK : found;
}

/* A device that has the sums: the first replica's, or any other of the last stage. */
static bool has_metrics(const struct cvy_plan *plan, const struct cvy_worker *worker) {
    int32_t pipe = plan->mesh.pipe, first = plan->first_device;
    int32_t mine = first + (pipe - 1 - first % pipe);
    return worker->rank == mine;
}

static cvy_status read_metrics_task(struct cvy_worker *worker, void *argument) {
    cvy_metrics *out = argument;
    const struct cvy_operand *operand;
    const struct cvy_segment *segment = cvy_program_forward(worker->program);
    const void *at = cvy_port_address(worker, segment, "loss", 0, 0, &operand);
    float loss = 0, hits[2] = {0, 0};
    if (!has_metrics(worker->plan, worker) || !at)
        return CVY_OK;
    CVY_TRY(worker->device->backend->download(worker->device, &loss, at, sizeof loss));
    at = cvy_port_address(worker, segment, "hits", 0, 0, &operand);
    if (at)
        CVY_TRY(worker->device->backend->download(worker->device, hits, at, sizeof hits));
    out->loss = (double)loss;
    out->top1 = (int64_t)hits[0];
    out->top5 = (int64_t)hits[1];
    return CVY_OK;
}

static cvy_status read_metrics(struct cvy_session *session, const struct cvy_work *work) {
    struct cvy_plan *plan = session->plan;
    cvy_metrics got = {.n = work->n};
    CVY_TRY(cvy_team_run(&plan->team, read_metrics_task, &got));
    if (plan->mesh.pipe > 1) /* else everybody has them */
        CVY_TRY(cvy_world_broadcast(plan->options.world, cvy_plan_process(plan, plan->mesh.pipe - 1), &got,
                                    sizeof got, "metrics"));
    cvy_under_way_add(session, work->n, work->n_update, &got);
    return CVY_OK;
}

static struct cvy_work training_work(const struct cvy_session *session, const cvy_batch *batch, int64_t n,
                                     int64_t n_update, int64_t first) {
    return (struct cvy_work){.batch = batch,
                             .n = n,
                             .n_update = n_update,
                             .first = first,
                             .step = session->n_updates,
                             .lr = session->lr,
                             .scale = session->scale.scale,
                             .n_skipped = session->scale.n_skipped,
                             .is_training = true};
}

/* Those of the newest cvy_forward. */
static struct cvy_work split_work(const struct cvy_session *session) {
    struct cvy_work work =
        training_work(session, NULL, session->split_n, session->split_n_update, session->split_first);
    work.is_split = true;
    return work;
}

void cvy_session_set_lr(cvy_session *session, double lr) { session->lr = lr; }

static cvy_status check_lr(const struct cvy_session *session) {
    if (!isfinite(session->lr))
        return CVY_FAIL(CVY_ERR_USAGE, "the learning rate is %g: it must be a finite number", session->lr);
    return CVY_OK;
}

/* Devices agree on whether it was skipped. */
static cvy_status end_update(struct cvy_session *session) {
    session->n_updates++;
    session->grad_norm = session->plan->team.workers[0].clip.norm;
    const bool is_skipped = session->plan->team.workers[0].is_skipping;
    if (session->scale.scale > 0)
        return cvy_loss_scale_settle(&session->scale, is_skipped);
    session->scale.is_skipped = is_skipped;
    session->scale.n_skipped += is_skipped;
    return CVY_OK;
}

cvy_status cvy_step(cvy_session *session, const cvy_batch *given) {
    cvy_batch batch;
    int64_t first;
    CVY_TRY(check_lr(session));
    CVY_TRY(cvy_batch_settle(session->plan, given, true, true, &batch));
    CVY_TRY(cvy_under_way_join(session, &batch, &first));
    CVY_TRY(cvy_session_prepare(session, batch.n, true, false));
    struct cvy_work work = training_work(session, &batch, batch.n, batch.n_update, first);
    bool is_last = first + batch.n == batch.n_update;
    session->split = CVY_SPLIT_NONE;
    cvy_status status = run_schedule(session, is_last ? TRAIN : ACCUMULATE, &work);
    if (status != CVY_OK) {
        cvy_discard(session);
        return explain_failure(session, status, &work);
    }
    if (is_last)
        CVY_TRY(end_update(session));
    CVY_TRY(read_metrics(session, &work));
    return is_last ? tell_skipped(session, &work) : CVY_OK;
}

cvy_status cvy_forward(cvy_session *session, const cvy_batch *given) {
    cvy_batch batch;
    int64_t first;
    CVY_TRY(cvy_batch_settle(session->plan, given, true, true, &batch));
    CVY_TRY(cvy_under_way_join(session, &batch, &first));
    CVY_TRY(cvy_session_prepare(session, batch.n, true, true));
    struct cvy_work work = training_work(session, &batch, batch.n, batch.n_update, first);
    work.is_split = true;
    session->split = CVY_SPLIT_NONE;
    CVY_TRY(run_schedule(session, FORWARD, &work));
    session->split = CVY_SPLIT_FORWARD;
    session->split_n = batch.n;
    session->split_n_update = batch.n_update;
    session->split_first = first;
    return CVY_OK;
}

cvy_status cvy_backward(cvy_session *session) {
    if (session->split != CVY_SPLIT_FORWARD)
        return CVY_FAIL(CVY_ERR_USAGE, "cvy_backward needs a cvy_forward right before it");
    struct cvy_work work = split_work(session);
    session->split = CVY_SPLIT_NONE;
    cvy_status status = run_schedule(session, BACKWARD, &work);
    if (status != CVY_OK) {
        cvy_discard(session);
        return status;
    }
    session->split = CVY_SPLIT_BACKWARD;
    return read_metrics(session, &work);
}

cvy_status cvy_update(cvy_session *session) {
    const struct cvy_under_way *u = &session->under_way;
    if (session->split != CVY_SPLIT_BACKWARD)
        return CVY_FAIL(CVY_ERR_USAGE, "cvy_update needs a cvy_backward right before it");
    if (u->n_done < u->n)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "cvy_update: %" PRId64 " of the %" PRId64
                        " images of this update have been through cvy_backward; bring the others first",
                        u->n_done, u->n);
    CVY_TRY(check_lr(session));
    struct cvy_work work = split_work(session);
    cvy_discard(session);
    CVY_TRY(run_schedule(session, UPDATE, &work));
    return end_update(session);
}

void cvy_session_metrics(const cvy_session *session, cvy_metrics *out) {
    *out = session->metrics;
    out->grad_norm = session->grad_norm;
}

static cvy_status check_output(const struct cvy_graph *g, const void *wanted, const char *name) {
    if (wanted && cvy_graph_output(g, name) == CVY_NONE)
        return CVY_FAIL(CVY_ERR_USAGE, "the graph has no output \"%s\": name one with cvy_output()", name);
    return CVY_OK;
}

/* Rows of the images that each process's last stages have worked on, to all processes. */
static cvy_status gather_rows(const struct cvy_session *session, int64_t n, void *rows, size_t row_bytes) {
    const struct cvy_plan *plan = session->plan;
    int32_t pipe = plan->mesh.pipe, first, n_local;
    int64_t n_shards = plan->options.shards;
    for (int32_t r = 0; rows && r < plan->mesh.data; r++) {
        cvy_tree_shards((int32_t)n_shards, plan->mesh.data, r, &first, &n_local);
        int64_t begin = cvy_shard_first(n, n_shards, first);
        int64_t end = cvy_shard_first(n, n_shards, first + n_local);
        CVY_TRY(cvy_world_broadcast(plan->options.world, cvy_plan_process(plan, r * pipe + pipe - 1),
                                    (char *)rows + (size_t)begin * row_bytes,
                                    (size_t)(end - begin) * row_bytes, "results"));
    }
    return CVY_OK;
}

cvy_status cvy_evaluate(cvy_session *session, const cvy_batch *given, float *losses, int32_t *ranks,
                        float *logits) {
    const struct cvy_graph *g = session->plan->evaluation;
    cvy_value v = cvy_graph_output(g, "logits");
    cvy_batch batch;
    CVY_TRY(check_output(g, losses, "losses"));
    CVY_TRY(check_output(g, ranks, "ranks"));
    CVY_TRY(check_output(g, logits, "logits"));
    CVY_TRY(cvy_batch_settle(session->plan, given, false, losses || ranks, &batch));
    CVY_TRY(cvy_session_prepare(session, batch.n, false, false));
    struct cvy_work work = {.batch = &batch,
                            .n = batch.n,
                            .step = session->n_updates,
                            .losses = losses,
                            .ranks = ranks,
                            .logits = logits};
    if (v != CVY_NONE)
        work.n_classes = cvy_shape_count(&cvy_graph_value(g, v)->desc.shape) / g->batch;
    session->split = CVY_SPLIT_NONE; /* the slots have held what cvy_backward would need */
    CVY_TRY(run_schedule(session, EVALUATE, &work));
    CVY_TRY(gather_rows(session, batch.n, losses, sizeof *losses));
    CVY_TRY(gather_rows(session, batch.n, ranks, sizeof *ranks));
    return gather_rows(session, batch.n, logits, (size_t)work.n_classes * sizeof *logits);
}

cvy_status cvy_session_spread(struct cvy_session *session) {
    struct cvy_work work = {.batch = NULL};
    return run_schedule(session, START, &work);
}

int64_t cvy_session_updates(const cvy_session *session) { return (int64_t)session->n_updates; }

double cvy_session_touch_s(const cvy_session *session) {
    double most = 0;
    for (int i = 0; i < session->plan->team.n; i++) {
        double t = session->plan->team.workers[i].touch_s;
        most = t > most ? t : most;
    }
    return most;
}
