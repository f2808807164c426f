/* The transport between devices of one process: members are threads that share memory.
   Every operation of all members is a meeting (hub.h): each posts what it brings, waits until all have
   posted, does its share, and waits until all are done. No helper thread: whoever waits for a reduction sums
   a slice of it and writes that slice to every result that is wanted. Messages between two: links.h. */
#include "comm/hub.h"
#include "comm/links.h"

#include <string.h>

/* ---- reductions ---------------------------------------------------------------------------------- */

static cvy_status threads_reduce_start(struct cvy_group *me, int slot, const struct cvy_reduction *what) {
    CVY_TRY(cvy_hub_post_reduction(me, slot, what));
    cvy_gate_arrive(me, &me->hub->slots[slot].posted);
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
    if (cvy_hub_collect(me, slot, &sum) != CVY_OK)
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
    CVY_TRY(cvy_hub_check_broadcast(me, root));
    if (me->rank != root && n_bytes > 0)
        memcpy(bytes, hub->members[root]->broadcast.bytes, n_bytes);
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
