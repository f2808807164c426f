/* Reductions and broadcasts from device to device. As with `threads` each member adds up a slice of all partial sums
   and writes it to every result, but enqueued: members meet on the host to learn each other's addresses and marks,
   and the devices wait for each other by these marks.

   Invariants: a mark happens anew only after all have followed it: `posted` in the next meeting, which begins after the
   gate `done` of this one; `done` after the next one's gate `posted`, before which all have followed it. */
#include "comm/peers.h"
#include "comm/device_tree.h"

#include "rt/backend.h"
#include "rt/tree.h"

#include <stdlib.h>

static const struct cvy_peers *ops(const struct cvy_group *me) { return me->device->backend->peers; }

static cvy_status state_of(struct cvy_group *me, struct cvy_peer_state **out) {
    if (!me->peers)
        CVY_TRY(CVY_ALLOC(me->peers, 1));
    *out = me->peers;
    return CVY_OK;
}

void cvy_peer_state_free(struct cvy_group *member) {
    if (!member->peers)
        return;
    ops(member)->unmark(member->peers->posted);
    ops(member)->unmark(member->peers->done);
    ops(member)->release(member->device, member->peers->scratch);
    free(member->peers);
    member->peers = NULL;
}

/* ---- meetings of devices ------------------------------------------------------------------------- */

/* Everything of the others that came before their arrival at the gate comes before what follows here. */
static cvy_status follow_all(struct cvy_group *me, bool is_done) {
    for (int m = 0; m < me->hub->n; m++) {
        const struct cvy_group *other = me->hub->members[m];
        if (other != me)
            CVY_TRY(ops(me)->follow(me->device, is_done ? other->peers->done : other->peers->posted));
    }
    return CVY_OK;
}

static cvy_status meet(struct cvy_group *me, struct cvy_gate *gate, uint64_t round, bool is_done,
                       const char *name) {
    struct cvy_peer_state *state;
    CVY_TRY(state_of(me, &state));
    CVY_TRY(ops(me)->mark(me->device, is_done ? &state->done : &state->posted));
    cvy_gate_arrive(me, gate);
    return cvy_gate_wait(me, gate, round, name);
}

/* ---- reductions ---------------------------------------------------------------------------------- */

static cvy_status reserve(struct cvy_group *me, size_t n_bytes) {
    struct cvy_peer_state *state = me->peers;
    if (state->scratch_bytes >= n_bytes)
        return CVY_OK;
    ops(me)->release(me->device, state->scratch);
    state->scratch = NULL;
    state->scratch_bytes = 0;
    CVY_TRY(ops(me)->alloc(me->device, n_bytes, (void **)&state->scratch));
    state->scratch_bytes = n_bytes;
    return CVY_OK;
}

static cvy_status reserve_for(struct cvy_group *me, const struct cvy_reduction *what) {
    struct cvy_peer_state *state;
    if (what->n_partials > CVY_MAX_PARTIALS)
        return CVY_OK; /* `reduce` refuses it */
    CVY_TRY(state_of(me, &state));
    CVY_TRY(cvy_tree_plan(what->n_shards, what->partials, what->n_partials, me->n_adds));
    size_t longest = what->n / (size_t)me->hub->n + CVY_SLICE_FLOATS;
    return reserve(me, cvy_device_tree_inner(me->n_adds, what->n_partials) * longest * sizeof(float));
}

/* Adds up the floats at .. at + n - 1 in the tree, the root into results[0]. */
static cvy_status add_up(struct cvy_group *me, const struct cvy_blocksum *what, size_t at, size_t n) {
    const float *nodes[CVY_MAX_PARTIALS];
    CVY_TRY(reserve(me, cvy_device_tree_inner(what->n_adds, what->n_partials) * n * sizeof(float)));
    for (int32_t p = 0; p < what->n_partials; p++)
        nodes[p] = what->partials[p] + at;
    const struct cvy_device_tree tree = {.n_partials = what->n_partials,
                                         .n_adds = what->n_adds,
                                         .partials = nodes,
                                         .n = n,
                                         .scratch = me->peers->scratch,
                                         .root = what->results[0] + at};
    return cvy_device_tree_add(me->device, &tree);
}

static cvy_status sum_slice(struct cvy_group *me, const struct cvy_blocksum *what, size_t n_floats) {
    size_t at = cvy_slice_begin(n_floats, me->rank, me->hub->n);
    size_t n = cvy_slice_begin(n_floats, me->rank + 1, me->hub->n) - at;
    const float *root = what->n_partials > 1 ? what->results[0] : what->partials[0];
    if (n == 0 || what->n_results == 0)
        return CVY_OK;
    if (what->n_partials > 1)
        CVY_TRY(add_up(me, what, at, n));
    for (int32_t r = 0; r < what->n_results; r++) {
        if (what->results[r] != root)
            CVY_TRY(ops(me)->copy(me->device, what->results[r] + at, root + at, n * sizeof(float)));
    }
    return CVY_OK;
}

static cvy_status reduce(struct cvy_group *me, int slot, const struct cvy_reduction *what) {
    struct cvy_blocksum sum;
    CVY_TRY(cvy_hub_post_reduction(me, slot, what));
    struct cvy_meeting *meeting = &me->hub->slots[slot];
    CVY_TRY(meet(me, &meeting->posted, me->rounds[slot], false, what->name));
    if (cvy_hub_collect(me, slot, &sum) != CVY_OK)
        return cvy_hub_give_up(me);
    CVY_TRY(follow_all(me, false));
    CVY_TRY(sum_slice(me, &sum, what->n));
    CVY_TRY(meet(me, &meeting->done, me->rounds[slot], true, what->name));
    me->open[slot] = NULL;
    return follow_all(me, true);
}

/* ---- broadcasts ----------------------------------------------------------------------------------- */

static cvy_status broadcast(struct cvy_group *me, int root, void *bytes, size_t n_bytes, const char *name) {
    struct cvy_hub *hub = me->hub;
    CVY_TRY(cvy_hub_check(me, name, 0));
    if (root < 0 || root >= hub->n)
        return CVY_FAIL(CVY_ERR_FAILED, "%s: there is no member %d among %d", name, root, hub->n);
    uint64_t round = ++me->general_rounds;
    me->broadcast = (struct cvy_broadcast){.name = name, .root = root, .bytes = bytes, .n_bytes = n_bytes};
    CVY_TRY(meet(me, &hub->general.posted, round, false, name));
    CVY_TRY(cvy_hub_check_broadcast(me, root));
    CVY_TRY(follow_all(me, false));
    if (me->rank != root && n_bytes > 0)
        CVY_TRY(ops(me)->copy(me->device, bytes, hub->members[root]->broadcast.bytes, n_bytes));
    CVY_TRY(meet(me, &hub->general.done, round, true, name));
    return follow_all(me, true);
}

/* ---- the table ------------------------------------------------------------------------------------- */

static void attach(struct cvy_group *me, struct cvy_device *device) { me->device = device; }

static const struct cvy_device_transport peers = {
    .name = "peers",
    .attach = attach,
    .reserve = reserve_for,
    .reduce = reduce,
    .broadcast = broadcast,
    .link_open = cvy_peers_link_open,
    .send = cvy_peers_send,
    .recv = cvy_peers_recv,
};

const struct cvy_device_transport *cvy_peers_find(struct cvy_device *const *devices, int n) {
    for (int i = 0; i < n; i++) {
        const struct cvy_peers *of = devices[i]->backend->peers;
        if (!of || devices[i]->backend != devices[0]->backend)
            return NULL;
        for (int k = 0; k < n; k++) {
            if (k != i && !of->reaches(devices[i], devices[k]))
                return NULL;
        }
    }
    return &peers;
}
