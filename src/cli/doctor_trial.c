/* See doctor_trial.h: opening devices, threads and groups. */
#include "cli/doctor_trial.h"

#include "base/mem.h"
#include "base/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double TIMEOUT_S = 30;

static cvy_status open_devices(struct trial *t, const cvy_log_sink *log) {
    CVY_TRY(CVY_ALLOC(t->members, (size_t)t->list.n));
    for (int i = 0; i < t->list.n; i++) {
        const struct cvy_device_spec spec = {.index = t->list.index[i],
                                             .part = t->list.part[i],
                                             .n_local = t->list.n,
                                             .local_index = i,
                                             .conv_algo = "auto",
                                             .timeout_s = TIMEOUT_S,
                                             .log = log};
        t->members[i].trial = t;
        t->members[i].rank = i;
        CVY_TRY(t->list.backend->open(&spec, &t->members[i].device));
    }
    return CVY_OK;
}

static cvy_status open_groups(struct trial *t) {
    const int n = t->list.n;
    const struct cvy_group_spec spec = {.n = n, .timeout_s = TIMEOUT_S};
    struct cvy_group **groups = NULL;
    if (n < 2)
        return CVY_OK;
    t->transport = cvy_transport_find("threads");
    CVY_TRY(CVY_ALLOC(groups, (size_t)n));
    cvy_status status = t->transport->open(&spec, groups);
    for (int i = 0; status == CVY_OK && i < n; i++)
        t->members[i].group = groups[i];
    free(groups);
    return status == CVY_OK ? doctor_pairs_open(t) : status;
}

static cvy_status work(struct trial_member *me) {
    const struct cvy_transport *transport = me->trial->transport;
    CVY_TRY(me->device->backend->enter(me->device));
    if (me->group) /* all at the same time: what one gets while the others work, too */
        CVY_TRY(transport->barrier(me->group, "self-test"));
    CVY_TRY(doctor_rates(me));
    if (!me->group)
        return CVY_OK;
    CVY_TRY(transport->barrier(me->group, "self-test of devices"));
    return doctor_reduce(me);
}

static void give_up(const struct trial_member *me) {
    const struct trial *t = me->trial;
    for (int p = 0; p < t->n_pairs; p++)
        for (int k = 0; k < 2; k++)
            if (t->pairs[p].member[k] == me->rank)
                t->transport->abort(t->pairs[p].group[k], me->error.message);
    if (me->group)
        t->transport->abort(me->group, me->error.message);
}

static void *member_main(void *argument) {
    struct trial_member *me = argument;
    cvy_error_save(&me->error, work(me));
    if (me->error.code != CVY_OK)
        give_up(me);
    return NULL;
}

/* The reason that is no consequence of another one, where there is one. */
static cvy_status first_failure(const struct trial *t) {
    const struct cvy_error *first = NULL;
    for (int i = 0; i < t->list.n; i++) {
        const struct cvy_error *error = &t->members[i].error;
        if (error->code != CVY_OK && (!first || (first->code == CVY_ERR_LOST && error->code != CVY_ERR_LOST)))
            first = error;
    }
    return first ? cvy_error_restore(first) : CVY_OK;
}

cvy_status doctor_trial_run(struct trial *t, const char *devices, const char *backend,
                            const cvy_log_sink *log, struct cvy_pool *pool) {
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_devices_parse(devices, backend, false, pool, &t->list));
    CVY_TRY(open_devices(t, log));
    CVY_TRY(open_groups(t));
    for (int i = 0; i < t->list.n && status == CVY_OK; i++) {
        char name[16];
        snprintf(name, sizeof name, "doctor:%u", (unsigned)i % 1000);
        status = cvy_thread_start(&t->members[i].thread, name, member_main, &t->members[i]);
        t->members[i].is_running = status == CVY_OK;
    }
    struct cvy_error start;
    cvy_error_save(&start, status);
    for (int i = 0; i < t->list.n; i++)
        if (status != CVY_OK && t->members[i].group) /* not all are there to be waited for */
            t->transport->abort(t->members[i].group, start.message);
    for (int i = 0; i < t->list.n; i++)
        if (t->members[i].is_running)
            pthread_join(t->members[i].thread, NULL);
    return status == CVY_OK ? first_failure(t) : cvy_error_restore(&start);
}

void doctor_trial_free(struct trial *t) {
    struct cvy_group **groups = calloc((size_t)t->list.n + 1, sizeof *groups);
    doctor_pairs_close(t);
    for (int i = 0; groups && t->members && i < t->list.n; i++)
        groups[i] = t->members[i].group;
    if (groups && groups[0])
        t->transport->close(t->list.n, groups);
    free(groups);
    for (int i = 0; t->members && i < t->list.n; i++)
        if (t->members[i].device)
            t->list.backend->close(t->members[i].device);
    free(t->members);
    *t = (struct trial){.n_pairs = 0};
}
