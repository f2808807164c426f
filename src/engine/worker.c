/* Worker threads: see worker.h. */
#include "engine/plan.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* A loss that is not finite is seen by all devices alike: nobody is left waiting, and the group stays usable. */
static void give_up(struct cvy_worker *worker, cvy_status status) {
    struct cvy_team *team = worker->team;
    int none = -1;
    atomic_compare_exchange_strong(&team->first_failed, &none, (int)(worker - team->workers));
    if (status == CVY_ERR_NAN)
        return;
    char reason[CVY_ERROR_TEXT];
    const cvy_world *world = worker->plan->options.world;
    if (cvy_world_size(world) > 1)
        snprintf(reason, sizeof reason, "rank %d: %.480s", cvy_world_rank(world), worker->error.message);
    else
        memcpy(reason, worker->error.message, sizeof reason);
    if (worker->group) /* the first reason stays */
        team->transport->abort(worker->group, reason);
    if (worker->replicas && worker->replicas != worker->group)
        team->transport->abort(worker->replicas, reason);
}

/* Waits for what a task enqueued, also when its loss is not finite: other devices wait for it too, and the first error
   counts. */
static cvy_status settle(struct cvy_worker *worker, cvy_status status) {
    const struct cvy_streams *streams = worker->device->backend->streams;
    struct cvy_error error;
    if (!streams || (status != CVY_OK && status != CVY_ERR_NAN))
        return status;
    cvy_error_save(&error, status);
    cvy_status settled = streams->synchronize(worker->device);
    return status == CVY_OK ? settled : cvy_error_restore(&error);
}

/* Nothing that a task enqueued outlives it: after a failure it is given up, once the others know, since until then it
   may wait for them. */
static void run_task(struct cvy_worker *worker, cvy_task task, void *argument) {
    const struct cvy_streams *streams = worker->device->backend->streams;
    atomic_store(&worker->doing, CVY_DOING_WORK);
    cvy_status status = settle(worker, task(worker, argument));
    atomic_store(&worker->doing, CVY_DOING_NOTHING);
    worker->error.code = CVY_OK;
    if (status == CVY_OK)
        return;
    cvy_error_save(&worker->error, status);
    give_up(worker, status);
    if (streams)
        streams->abandon(worker->device);
}

static cvy_status bind_device(struct cvy_worker *worker, void *argument) {
    (void)argument;
    return worker->device->backend->enter(worker->device);
}

static void *worker_main(void *argument) {
    struct cvy_worker *worker = argument;
    struct cvy_team *team = worker->team;
    for (uint64_t n = 1;; n++) {
        /* a worker waits for work as long as the program lives: the one wait without a deadline */
        while (cvy_counter_wait(&team->start, n, 3600, NULL, "work") != CVY_OK) {
        }
        if (team->is_closing)
            return NULL;
        run_task(worker, team->task, team->argument);
        cvy_counter_add(&team->done, 1);
    }
}

cvy_status cvy_team_run(struct cvy_team *team, cvy_task task, void *argument) {
    team->task = task;
    team->argument = argument;
    atomic_store(&team->first_failed, -1);
    team->n_tasks++;
    cvy_counter_add(&team->start, 1);
    /* every wait inside a task has its own deadline, so that this one only catches our own bugs */
    CVY_TRY(cvy_counter_wait(&team->done, team->n_tasks * (uint64_t)team->n, 1e9, NULL, "the devices"));
    int failed = atomic_load(&team->first_failed);
    if (failed < 0)
        return CVY_OK;
    for (int i = 0; team->workers[failed].error.code == CVY_ERR_NAN && i < team->n; i++) {
        if (team->workers[i].error.code == CVY_ERR_NAN) /* the lowest device: it has the lowest shard */
            return cvy_error_restore(&team->workers[i].error);
    }
    return cvy_error_restore(&team->workers[failed].error);
}

cvy_status cvy_team_start(struct cvy_team *team) {
    CVY_TRY(cvy_counter_init(&team->start));
    CVY_TRY(cvy_counter_init(&team->done));
    for (int i = 0; i < team->n; i++) {
        char name[24];
        snprintf(name, sizeof name, "cvy-dev-%d", i);
        team->workers[i].team = team;
        CVY_TRY(cvy_thread_start(&team->workers[i].thread, name, worker_main, &team->workers[i]));
        team->workers[i].is_running = true;
    }
    return cvy_team_run(team, bind_device, NULL);
}

void cvy_team_stop(struct cvy_team *team) {
    team->is_closing = true;
    cvy_counter_add(&team->start, 1);
    for (int i = 0; i < team->n; i++) {
        if (team->workers[i].is_running)
            pthread_join(team->workers[i].thread, NULL);
        team->workers[i].is_running = false;
    }
    cvy_counter_free(&team->start);
    cvy_counter_free(&team->done);
}
