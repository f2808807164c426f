/* The transport between devices of one process: members are threads that share memory.
   Every operation of all members is a meeting (hub.h): each posts what it brings, waits until all have
   posted, does its share, and waits until all are done. No helper thread: whoever waits for a reduction sums
   a slice of it and writes that slice to every result that is wanted. Messages between two: links.h. */
#include "comm/blocksum.h"
#include "comm/hub.h"
#include "comm/links.h"
#include "rt/tree.h"

#include <string.h>

/* ---- reductions ---------------------------------------------------------------------------------- */

static cvy_status threads_reduce_start(struct cvy_group *me, int slot, const struct cvy_reduction *what) {
    CVY_TRY(cvy_hub_post_reduction(me, slot, what));
    cvy_gate_arrive(me, &me->hub->slots[slot].posted);
    return CVY_OK;
}

static bool is_same_reduction(const struct cvy_reduction *a, const struct cvy_reduction *b) {
    bool is_same = a->n == b->n && a->n_shards == b->n_shards && a->n_partials == b->n_partials &&
                   strcmp(a->name, b->name) == 0;
    for (int32_t p = 0; is_same && p < a->n_partials; p++) {
        const struct cvy_partial *x = &a->partials[p], *y = &b->partials[p];
        is_same = x->first == y->first && x->level == y->level && x->device == y->device;
    }
    return is_same;
}

/* Finds everybody's memory, once all have posted: each member's partials stand in its own order. */
static cvy_status collect(struct cvy_group *me, int slot, struct cvy_blocksum *out) {
    const struct cvy_hub *hub = me->hub;
    const struct cvy_reduction *what = me->open[slot];
    int32_t n_results = 0;
    for (int m = 0; m < hub->n; m++) {
        const struct cvy_reduction *other = hub->members[m]->open[slot];
        if (!is_same_reduction(what, other))
            return CVY_FAIL(CVY_ERR_LOST,
                            "member %d brought %s (%zu floats, %d shards, %d partial sums) and "
                            "member %d brought %s (%zu, %d, %d): they must run the same program",
                            me->rank, what->name, what->n, what->n_shards, what->n_partials, m, other->name,
                            other->n, other->n_shards, other->n_partials);
        if (other->result)
            me->results[n_results++] = other->result;
    }
    for (int32_t p = 0, k = 0; p < what->n_partials; p++, k++) {
        int32_t owner = what->partials[p].device;
        if (owner < 0 || owner >= hub->n)
            return CVY_FAIL(CVY_ERR_FAILED, "%s: partial sum %d belongs to member %d of %d", what->name, p,
                            owner, hub->n);
        if (p > 0 && owner != what->partials[p - 1].device)
            k = 0; /* shards of a member are consecutive: this is the next member's first */
        me->partials[p] = hub->members[owner]->open[slot]->mine[k];
    }
    CVY_TRY(cvy_tree_plan(what->n_shards, what->partials, what->n_partials, me->n_adds));
    *out = (struct cvy_blocksum){.n_partials = what->n_partials,
                                 .partials = me->partials,
                                 .n_adds = me->n_adds,
                                 .n_results = n_results,
                                 .results = me->results};
    return CVY_OK;
}

static cvy_status threads_reduce_wait(struct cvy_group *me, int slot) {
    if (slot < 0 || slot >= CVY_MAX_REDUCTIONS || !me->open[slot])
        return CVY_FAIL(CVY_ERR_FAILED, "slot %d: wait for a reduction that was not started", slot);
    struct cvy_hub *hub = me->hub;
    const struct cvy_reduction *what = me->open[slot];
    struct cvy_meeting *meeting = &hub->slots[slot];
    struct cvy_blocksum sum;
    CVY_TRY(cvy_gate_wait(me, &meeting->posted, me->rounds[slot], what->name));
    if (collect(me, slot, &sum) != CVY_OK)
        return cvy_hub_give_up(me);
    cvy_blocksum_run(&sum, cvy_slice_begin(what->n, me->rank, hub->n),
                     cvy_slice_begin(what->n, me->rank + 1, hub->n));
    cvy_gate_arrive(me, &meeting->done);
    CVY_TRY(cvy_gate_wait(me, &meeting->done, me->rounds[slot], what->name));
    me->open[slot] = NULL;
    return CVY_OK;
}

/* ---- broadcast and barrier ------------------------------------------------------------------------ */

static cvy_status threads_broadcast(struct cvy_group *me, int root, void *bytes, size_t n_bytes,
                                    const char *name) {
    struct cvy_hub *hub = me->hub;
    CVY_TRY(cvy_hub_check(me, name, 0));
    if (root < 0 || root >= hub->n)
        return CVY_FAIL(CVY_ERR_FAILED, "%s: there is no member %d among %d", name, root, hub->n);
    uint64_t round = ++me->general_rounds;
    me->broadcast = (struct cvy_broadcast){.name = name, .root = root, .bytes = bytes, .n_bytes = n_bytes};
    cvy_gate_arrive(me, &hub->general.posted);
    CVY_TRY(cvy_gate_wait(me, &hub->general.posted, round, name));
    const struct cvy_broadcast *from = &hub->members[root]->broadcast;
    if (from->root != root || from->n_bytes != n_bytes || strcmp(from->name, name) != 0) {
        CVY_FAIL(CVY_ERR_LOST,
                 "member %d is at %s (%zu bytes from member %d) and member %d at %s (%zu bytes from "
                 "member %d): they must run the same program",
                 me->rank, name, n_bytes, root, root, from->name, from->n_bytes, from->root);
        return cvy_hub_give_up(me);
    }
    if (me->rank != root && n_bytes > 0)
        memcpy(bytes, from->bytes, n_bytes);
    cvy_gate_arrive(me, &hub->general.done);
    CVY_TRY(cvy_gate_wait(me, &hub->general.done, round, name));
    return CVY_OK;
}

static cvy_status threads_barrier(struct cvy_group *me, const char *name) {
    CVY_TRY(threads_broadcast(me, 0, NULL, 0, name)); /* nobody leaves before all have come */
    return CVY_OK;
}

static void threads_abort(struct cvy_group *me, const char *reason) { cvy_hub_abort(me->hub, reason); }

static const char *threads_abort_reason(const struct cvy_group *me) {
    return me->hub->is_aborted ? me->hub->reason : NULL;
}

const struct cvy_transport cvy_transport_threads = {
    .name = "threads",
    .open = cvy_hub_open,
    .close = cvy_hub_close,
    .reduce_start = threads_reduce_start,
    .reduce_wait = threads_reduce_wait,
    .broadcast = threads_broadcast,
    .link_open = cvy_link_open,
    .send = cvy_link_send,
    .recv = cvy_link_recv,
    .barrier = threads_barrier,
    .abort = threads_abort,
    .abort_reason = threads_abort_reason,
};
