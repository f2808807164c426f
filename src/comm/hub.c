/* Gates, the common reason of failure, and the life of a hub. */
#include "comm/hub.h"

#include "base/text.h"
#include "comm/net.h"
#include "comm/party.h"
#include "comm/peers.h"
#include "rt/backend.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static struct cvy_gate *hub_gate(struct cvy_hub *hub, int i) {
    struct cvy_meeting *meeting = i / 2 < CVY_MAX_REDUCTIONS ? &hub->slots[i / 2] : &hub->general;
    return i % 2 == 0 ? &meeting->posted : &meeting->done;
}

/* ---- failure ----------------------------------------------------------------------------------------- */

bool cvy_hub_stop(struct cvy_hub *hub, const char *reason) {
    pthread_mutex_lock(&hub->lock);
    bool is_first = !atomic_load(&hub->is_aborted);
    if (is_first) {
        strncpy(hub->reason, reason, sizeof hub->reason - 1);
        atomic_store(&hub->is_aborted, true);
    }
    pthread_mutex_unlock(&hub->lock);
    for (int i = 0; i < hub->n_gates; i++)
        cvy_counter_wake(&hub_gate(hub, i)->count);
    for (int m = 0; m < hub->n; m++)
        cvy_net_abort(hub->members[m]);
    cvy_links_wake(&hub->links);
    if (hub->party)
        cvy_party_wake(hub->party);
    return is_first;
}

void cvy_hub_abort(struct cvy_hub *hub, const char *reason) {
    if (cvy_hub_stop(hub, reason) && hub->party)
        cvy_party_tell(hub->party, hub->reason);
}

cvy_status cvy_hub_check(const struct cvy_group *me, const char *name, double waited_s) {
    if (!atomic_load(&me->hub->is_aborted))
        return CVY_OK;
    return CVY_FAIL(CVY_ERR_LOST, "%s: member %d stopped after %.1f seconds: %s", name, me->rank, waited_s,
                    me->hub->reason);
}

cvy_status cvy_hub_give_up(struct cvy_group *me) {
    cvy_hub_abort(me->hub, cvy_error());
    return CVY_ERR_LOST;
}

/* ---- waiting ------------------------------------------------------------------------------------------ */

cvy_status cvy_hub_wait(struct cvy_group *me, struct cvy_counter *counter, uint64_t target,
                        const char *name) {
    static const double look_s = 0.01;
    const struct cvy_hub *hub = me->hub;
    const struct cvy_streams *streams = me->device ? me->device->backend->streams : NULL;
    const int64_t start = cvy_now_ns();
    for (double left_s = hub->timeout_s;;) {
        bool is_last = !streams || !streams->check || left_s <= look_s;
        cvy_status status =
            cvy_counter_wait(counter, target, is_last ? left_s : look_s, &hub->is_aborted, name);
        if (status == CVY_OK || is_last || atomic_load(&hub->is_aborted))
            return status;
        CVY_TRY(streams->check(me->device));
        left_s = hub->timeout_s - (double)(cvy_now_ns() - start) * 1e-9;
    }
}

/* ---- gates ------------------------------------------------------------------------------------------- */

void cvy_gate_arrive(struct cvy_group *me, struct cvy_gate *gate) {
    atomic_fetch_add(&gate->arrived[me->rank], 1);
    cvy_counter_add(&gate->count, 1);
}

void cvy_hub_print_missing(const struct cvy_hub *hub, const _Atomic uint64_t *arrived, uint64_t round,
                           struct cvy_text *out) {
    enum { MOST = 4 };
    int n = 0;
    for (int m = 0; m < hub->n; m++) {
        bool is_missing = atomic_load(&arrived[m]) < round;
        if (is_missing && n < MOST)
            cvy_text_printf(out, "%s%d", n ? ", " : "member ", m);
        n += is_missing;
    }
    if (n > MOST)
        cvy_text_printf(out, " and %d more", n - MOST);
}

cvy_status cvy_hub_lose(struct cvy_group *me, const char *name, uint64_t round, double waited_s,
                        struct cvy_text *missing) {
    CVY_FAIL(CVY_ERR_LOST,
             "%s, time %llu: member %d waited %.1f seconds for %s, lost or slower than --timeout allows",
             name, (unsigned long long)round, me->rank, waited_s, missing->n ? missing->data : "another");
    cvy_text_free(missing);
    return cvy_hub_give_up(me);
}

cvy_status cvy_gate_wait(struct cvy_group *me, struct cvy_gate *gate, uint64_t round, const char *name) {
    struct cvy_hub *hub = me->hub;
    int64_t start = cvy_now_ns();
    cvy_status status = cvy_hub_wait(me, &gate->count, round * (uint64_t)hub->n, name);
    if (status != CVY_ERR_LOST)
        return status;
    double waited_s = (double)(cvy_now_ns() - start) * 1e-9;
    CVY_TRY(cvy_hub_check(me, name, waited_s));
    struct cvy_text missing = {0};
    cvy_hub_print_missing(hub, gate->arrived, round, &missing);
    return cvy_hub_lose(me, name, round, waited_s, &missing);
}

/* ---- opening and closing ----------------------------------------------------------------------------- */

static void hub_free(struct cvy_hub *hub) {
    cvy_links_free(&hub->links);
    for (int m = 0; hub->members && m < hub->n && hub->members[m]; m++) {
        cvy_peer_state_free(hub->members[m]);
        cvy_net_state_free(hub->members[m]);
    }
    for (int i = 0; i < hub->n_gates; i++)
        cvy_counter_free(&hub_gate(hub, i)->count);
    pthread_mutex_destroy(&hub->lock);
    cvy_pool_free(&hub->pool);
    free(hub);
}

static cvy_status hub_fill(struct cvy_hub *hub) {
    size_t n = (size_t)hub->n;
    while (hub->n_gates < 2 * (CVY_MAX_REDUCTIONS + 1)) {
        struct cvy_gate *gate = hub_gate(hub, hub->n_gates);
        CVY_TRY(cvy_pool_alloc(&hub->pool, n * sizeof *gate->arrived, (void **)&gate->arrived));
        CVY_TRY(cvy_counter_init(&gate->count));
        hub->n_gates++;
    }
    CVY_TRY(cvy_pool_alloc(&hub->pool, n * sizeof(struct cvy_group *), (void **)&hub->members));
    for (int m = 0; m < hub->n; m++) {
        struct cvy_group *member;
        CVY_TRY(cvy_pool_alloc(&hub->pool, sizeof *member, (void **)&member));
        CVY_TRY(cvy_pool_alloc(&hub->pool, n * sizeof *member->results, (void **)&member->results));
        member->hub = hub;
        member->rank = m;
        hub->members[m] = member;
    }
    return CVY_OK;
}

cvy_status cvy_hub_open(const struct cvy_group_spec *spec, struct cvy_group **members) {
    if (spec->n < 1)
        return CVY_FAIL(CVY_ERR_USAGE, "a group needs at least one member, not %d", spec->n);
    struct cvy_hub *hub;
    CVY_TRY(CVY_ALLOC(hub, 1));
    hub->n = spec->n;
    hub->timeout_s = spec->timeout_s;
    pthread_mutex_init(&hub->lock, NULL); /* with default attributes it cannot fail */
    cvy_status status = hub_fill(hub);
    if (status != CVY_OK) {
        hub_free(hub);
        return status;
    }
    memcpy(members, hub->members, (size_t)spec->n * sizeof *members);
    return CVY_OK;
}

void cvy_hub_close(int n, struct cvy_group **members) {
    if (n > 0 && members[0])
        hub_free(members[0]->hub);
    for (int m = 0; m < n; m++)
        members[m] = NULL;
}
