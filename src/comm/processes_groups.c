/* The groups that are open in a process, and how they end when others give up. */
#include "comm/party.h"
#include "comm/processes.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- giving up ------------------------------------------------------------------------------------------------ */

void cvy_processes_lose(struct cvy_processes *all, const char *reason) {
    pthread_mutex_lock(&all->lock);
    if (!atomic_load(&all->is_lost)) {
        snprintf(all->lost_reason, sizeof all->lost_reason, "%s", reason);
        atomic_store(&all->is_lost, true);
    }
    for (struct cvy_open_group *group = all->groups; group; group = group->next) {
        if (group->hub)
            cvy_hub_stop(group->hub, all->lost_reason);
    }
    pthread_mutex_unlock(&all->lock);
    cvy_counter_wake(&all->courier.left);
    cvy_courier_ring(&all->courier);
}

static struct cvy_open_group *find(struct cvy_processes *all, uint32_t number) {
    struct cvy_open_group *group = all->groups;
    while (group && group->number != number)
        group = group->next;
    return group;
}

/* With the lock. NULL: no memory. */
static struct cvy_open_group *add(struct cvy_processes *all, uint32_t number) {
    struct cvy_open_group *group = calloc(1, sizeof *group);
    if (group) {
        group->number = number;
        group->next = all->groups;
        all->groups = group;
    }
    return group;
}

void cvy_processes_stop(struct cvy_processes *all, uint32_t number, const char *reason) {
    pthread_mutex_lock(&all->lock);
    struct cvy_open_group *group = find(all, number);
    if (!group && number > all->n_groups) /* else: closed, or not this process's */
        group = add(all, number);
    if (group && group->hub)
        cvy_hub_stop(group->hub, reason);
    else if (group && !group->reason[0])
        snprintf(group->reason, sizeof group->reason, "%s", reason);
    pthread_mutex_unlock(&all->lock);
}

static void tell(struct cvy_party *party, const char *reason) {
    struct cvy_processes *all = party->context;
    if (all->control)
        cvy_control_abandon(all->control, (int32_t)party->number, reason);
}

static void note(struct cvy_party *party, uint64_t number, const char *name) {
    struct cvy_processes *all = party->context;
    if (all->control)
        cvy_control_note(all->control, number, name);
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static cvy_status check_spec(const struct cvy_group_spec *spec) {
    if (spec->n < 1)
        return CVY_FAIL(CVY_ERR_USAGE, "a group needs at least one member, not %d", spec->n);
    for (int m = 0; m < spec->n; m++) {
        int32_t rank = spec->process[m];
        if (rank < 0 || rank >= spec->world->size || (m > 0 && rank < spec->process[m - 1]))
            return CVY_FAIL(CVY_ERR_USAGE, "a group of %d: member %d cannot be in process %d", spec->n, m,
                            rank);
    }
    return CVY_OK;
}

static void count_local(const struct cvy_group_spec *spec, int *n_local) {
    *n_local = 0;
    for (int m = 0; m < spec->n; m++)
        *n_local += spec->process[m] == spec->world->rank;
}

static cvy_status connect(struct cvy_processes *all, const struct cvy_group_spec *spec, uint32_t number,
                          struct cvy_hub *hub) {
    struct cvy_party *party;
    CVY_TRY(cvy_party_open(hub, &all->courier, number, spec->process, &party));
    party->tell = tell;
    party->note = note;
    party->context = all;
    hub->party = party;
    return CVY_OK;
}

/* The next group's number, and its entry: from here on those that tell of losses know it. */
static cvy_status enlist(struct cvy_processes *all, bool is_here, struct cvy_open_group **out) {
    pthread_mutex_lock(&all->lock);
    uint32_t number = ++all->n_groups;
    *out = find(all, number);
    if (!*out && is_here)
        *out = add(all, number);
    bool is_full = is_here && !*out;
    pthread_mutex_unlock(&all->lock);
    return is_full ? CVY_FAIL(CVY_ERR_MEMORY, "out of memory for a group") : CVY_OK;
}

/* With its hub; what they told before holds. */
static void complete(struct cvy_processes *all, struct cvy_open_group *group, struct cvy_hub *hub) {
    pthread_mutex_lock(&all->lock);
    group->hub = hub;
    if (all->is_lost || group->reason[0])
        cvy_hub_stop(hub, all->is_lost ? all->lost_reason : group->reason);
    pthread_mutex_unlock(&all->lock);
}

static void delist(struct cvy_processes *all, const struct cvy_open_group *group) {
    pthread_mutex_lock(&all->lock);
    struct cvy_open_group **at = &all->groups;
    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    pthread_mutex_unlock(&all->lock);
    free((void *)group);
}

static cvy_status open_here(struct cvy_processes *all, const struct cvy_group_spec *spec, bool is_far,
                            struct cvy_open_group *group, struct cvy_group **members) {
    CVY_TRY(cvy_hub_open(spec, members));
    struct cvy_hub *hub = members[0]->hub;
    hub->processes = all;
    hub->entry = group;
    cvy_status status = is_far ? connect(all, spec, group->number, hub) : CVY_OK;
    if (status != CVY_OK) {
        cvy_hub_close(spec->n, members);
        return status;
    }
    complete(all, group, hub);
    if (hub->party)
        cvy_courier_add(&all->courier, hub->party);
    for (int m = 0; m < spec->n; m++) {
        if (spec->process[m] != spec->world->rank)
            members[m] = NULL;
    }
    return CVY_OK;
}

cvy_status cvy_processes_open(const struct cvy_group_spec *spec, struct cvy_group **members) {
    struct cvy_processes *all = (struct cvy_processes *)spec->world;
    int n_local;
    CVY_TRY(check_spec(spec));
    count_local(spec, &n_local);
    for (int m = 0; m < spec->n; m++)
        members[m] = NULL;
    struct cvy_open_group *group;
    CVY_TRY(enlist(all, n_local > 0, &group));
    if (n_local == 0) {
        if (group) /* given up before: nothing to us */
            delist(all, group);
        return CVY_OK;
    }
    cvy_status status = open_here(all, spec, n_local < spec->n, group, members);
    if (status != CVY_OK)
        delist(all, group);
    return status;
}

void cvy_processes_close(int n, struct cvy_group **members) {
    struct cvy_hub *hub = NULL;
    for (int m = 0; m < n; m++) {
        hub = members[m] ? members[m]->hub : hub;
        members[m] = NULL;
    }
    if (!hub)
        return;
    delist(hub->processes, hub->entry);
    if (hub->party)
        cvy_party_close(hub->party);
    if (!hub->party) /* else the courier is stuck, and may still use it */
        cvy_hub_close(1, &(struct cvy_group *){hub->members[0]});
}
