/* Joining and leaving. Everything that the network does happens in the courier; the main thread waits for its
   stages with deadlines of its own, so that an MPI library that waits for ever ends in an error. */
#include "comm/processes.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void on_abandoned(void *context, int32_t group, const char *reason) {
    struct cvy_processes *all = context;
    if (group < 0) {
        cvy_log(&all->log, CVY_LOG_WARNING, "rank %d: %s", all->base.rank, reason);
        cvy_processes_lose(all, reason);
    } else {
        cvy_processes_stop(all, (uint32_t)group, reason);
    }
}

/* The network failed in the courier. */
static void on_failed(void *context, const char *reason) {
    struct cvy_processes *all = context;
    if (all->control)
        cvy_control_abandon(all->control, -1, reason);
    cvy_processes_lose(all, reason);
}

static void reach(struct cvy_processes *all, enum cvy_stage stage) {
    uint64_t now = atomic_load(&all->stage.value);
    if (now < (uint64_t)stage)
        cvy_counter_add(&all->stage, (uint64_t)stage - now);
}

/* ---- the courier ------------------------------------------------------------------------------------ */

static cvy_status open_network(struct cvy_processes *all) {
    struct cvy_courier *courier = &all->courier;
    char error[CVY_NETWORK_ERROR] = "no reason given";
    if (courier->network->open(&courier->self, &courier->rank, &courier->size, &courier->max_tag, error) != 0)
        return CVY_FAIL(CVY_ERR_LOST, "%s cannot start: %s", courier->network->name, error);
    all->base.rank = courier->rank;
    all->base.size = courier->size;
    return cvy_courier_init(courier);
}

static cvy_status join_all(struct cvy_processes *all) {
    CVY_TRY(open_network(all));
    reach(all, CVY_STAGE_NETWORK);
    CVY_TRY(cvy_processes_meet(all));
    if (!all->control)
        return CVY_OK;
    return cvy_control_start(all->control,
                             &(struct cvy_control_events){.context = all, .abandoned = on_abandoned});
}

static void *courier_thread(void *argument) {
    struct cvy_processes *all = argument;
    struct cvy_courier *courier = &all->courier;
    cvy_status status = join_all(all);
    cvy_error_save(&all->error, status);
    reach(all, CVY_STAGE_JOINED);
    if (status != CVY_OK)
        return NULL;
    cvy_courier_run(courier);
    if (all->is_orderly) {
        char error[CVY_NETWORK_ERROR] = "no reason given";
        if (cvy_courier_end(courier) && courier->network->close(courier->self, error) != 0)
            status = CVY_FAIL(CVY_ERR_FAILED, "%s cannot end: %s", courier->network->name, error);
    }
    cvy_error_save(&all->end, status);
    reach(all, CVY_STAGE_ENDED);
    return NULL;
}

/* ---- joining --------------------------------------------------------------------------------------------------- */

static void free_all(struct cvy_processes *all) {
    cvy_courier_free(&all->courier);
    while (all->groups) {
        struct cvy_open_group *group = all->groups;
        all->groups = group->next;
        free(group);
    }
    cvy_counter_free(&all->stage);
    cvy_counter_free(&all->courier.bell.rings);
    cvy_counter_free(&all->courier.left);
    pthread_mutex_destroy(&all->courier.lock);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

static cvy_status make(const struct cvy_transport *transport, const struct cvy_network *network,
                       double timeout_s, const cvy_log_sink *log, struct cvy_processes **out) {
    struct cvy_processes *all;
    CVY_TRY(CVY_ALLOC(all, 1));
    all->base = (struct cvy_world){.transport = transport, .size = 1, .core_size = 1};
    all->timeout_s = timeout_s;
    all->log = *log;
    all->courier.network = network;
    all->courier.lost = on_failed;
    all->courier.context = all;
    pthread_mutex_init(&all->lock, NULL);
    pthread_mutex_init(&all->courier.lock, NULL);
    cvy_status status = cvy_counter_init(&all->stage);
    if (status == CVY_OK)
        status = cvy_counter_init(&all->courier.bell.rings);
    if (status == CVY_OK)
        status = cvy_counter_init(&all->courier.left);
    if (status == CVY_OK)
        status = cvy_thread_start(&all->thread, "cvy-courier", courier_thread, all);
    if (status != CVY_OK) {
        free(all); /* a process without memory for a lock ends soon */
        return status;
    }
    *out = all;
    return CVY_OK;
}

enum { START_S = 30 };

cvy_status cvy_processes_join(const struct cvy_transport *transport, const struct cvy_network *network,
                              double timeout_s, const cvy_log_sink *log, struct cvy_world **out) {
    struct cvy_processes *all;
    CVY_TRY(make(transport, network, timeout_s, log, &all));
    static const char *const doing[] = {"start", "exchange their addresses", "connect to rank 0"};
    /* a launcher may take its time to start all; the control connection has the same deadline as the last stage and
       says more: it goes first */
    const double patience_s[] = {timeout_s > START_S ? timeout_s : START_S, timeout_s, timeout_s + 1};
    for (int stage = CVY_STAGE_NETWORK; stage <= CVY_STAGE_JOINED; stage++) {
        if (cvy_counter_wait(&all->stage, (uint64_t)stage, patience_s[stage - 1], NULL, "join") == CVY_OK)
            continue;
        /* the thread is stuck in the library: it keeps its memory */
        return CVY_FAIL(CVY_ERR_LOST,
                        "waited %.1f seconds for all processes to %s through %s: one is lost or late",
                        patience_s[stage - 1], doing[stage - 1], network->name);
    }
    if (all->error.code == CVY_OK) {
        *out = &all->base;
        return CVY_OK;
    }
    pthread_join(all->thread, NULL);
    cvy_control_close(all->control);
    cvy_status status = cvy_error_restore(&all->error);
    free_all(all);
    return status;
}

/* ---- leaving ---------------------------------------------------------------------------------------------------- */

static cvy_status say_goodbye(struct cvy_processes *all) {
    struct cvy_courier *courier = &all->courier;
    atomic_store(&courier->is_leaving, true);
    cvy_courier_ring(courier);
    atomic_fetch_add(&courier->bell.n_waiting, 1);
    cvy_status status = cvy_counter_wait(&courier->left, 1, all->timeout_s, &all->is_lost, "goodbye");
    atomic_fetch_sub(&courier->bell.n_waiting, 1);
    if (status == CVY_OK)
        return CVY_OK;
    if (atomic_load(&all->is_lost))
        return CVY_FAIL(CVY_ERR_LOST, "%s", all->lost_reason);
    int rank = 0;
    while (rank < courier->size && (rank == courier->rank || atomic_load(&courier->has_left[rank])))
        rank++;
    return CVY_FAIL(CVY_ERR_LOST,
                    "rank %d waited %.1f seconds for rank %d to end, lost or slower than --timeout allows",
                    courier->rank, all->timeout_s, rank);
}

/* Waits for the thread's end; false when it is stuck in the library. */
static bool end_thread(struct cvy_processes *all, double patience_s) {
    atomic_store(&all->courier.is_ending, true);
    cvy_courier_ring(&all->courier);
    if (cvy_counter_wait(&all->stage, CVY_STAGE_ENDED, patience_s, NULL, "end") != CVY_OK)
        return false;
    pthread_join(all->thread, NULL);
    return true;
}

/* How long the library may take to end, in seconds. All processes have said goodbye, or are given up: nothing is lost
   when it does not. MPICH 4.0 over UCX's TCP does not, in half of all runs: one process waits for another's progress,
   which waits in the launcher's barrier. */
static const double END_S = 2, FAILED_END_S = 0.5;

cvy_status cvy_processes_leave(struct cvy_world *world, const char *reason) {
    struct cvy_processes *all = (struct cvy_processes *)world;
    cvy_status status = CVY_OK;
    struct cvy_error error;
    if (reason) {
        if (all->control)
            cvy_control_abandon(all->control, -1, reason);
        cvy_processes_lose(all, reason);
    } else {
        status = say_goodbye(all);
    }
    cvy_error_save(&error, status);
    cvy_control_close(all->control);
    all->control = NULL;
    all->is_orderly = !reason && status == CVY_OK;
    if (!end_thread(all, all->is_orderly ? END_S : FAILED_END_S)) { /* what it may touch stays */
        if (all->is_orderly)
            cvy_log(&all->log, CVY_LOG_INFO, "rank %d: all is done, but %s does not end: leaving without it",
                    all->base.rank, all->courier.network->name);
        return cvy_error_restore(&error);
    }
    if (status == CVY_OK)
        error = all->end;
    free_all(all);
    return cvy_error_restore(&error);
}
