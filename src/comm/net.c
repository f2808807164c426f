/* Reductions and broadcasts over a network of the devices. Each member adds up a slice of all partial sums, in the
   tree, so that bits do not depend on the network's own order:
     1. everybody sends every other its slice of each of its partial sums;
     2. everybody adds up its slice;
     3. everybody sends every other the sum of its slice.
   Nobody meets on the host: what each sends follows from the program, which all have alike. A member that is lost is
   found by who waits for its device, or by the transport of the group; then the network is given up.
   With --fast-reduce the network adds in an order of its own, which depends on the number of members. */
#include "comm/net.h"

#include "comm/device_tree.h"
#include "rt/tree.h"

#include <stdatomic.h>
#include <string.h>

static const struct cvy_net *ops(const struct cvy_group *me) { return me->device->backend->net; }
static const struct cvy_peers *memory(const struct cvy_group *me) { return me->device->backend->peers; }

static void attach(struct cvy_group *me, struct cvy_device *device) { me->device = device; }

static cvy_status open_net(struct cvy_group *me, const struct cvy_transport *transport) {
    char id[CVY_NET_ID] = {0};
    void *net = NULL;
    me->net.hosts = transport;
    if (atomic_load(&me->net.net))
        return CVY_OK;
    if (me->rank == 0)
        CVY_TRY(ops(me)->make_id(id));
    CVY_TRY(transport->broadcast(me, 0, id, sizeof id, "the network's name"));
    CVY_TRY(ops(me)->open(me->device, id, me->rank, me->hub->n, &me->hub->is_aborted, &net));
    atomic_store(&me->net.net, net);
    CVY_TRY(cvy_hub_check(me, "the network", 0)); /* who gave up before did not see it */
    return CVY_OK;
}

void cvy_net_abort(struct cvy_group *member) {
    void *net = atomic_load(&member->net.net);
    if (net)
        ops(member)->abort(net);
    cvy_net_links_abort(member);
}

void cvy_net_state_free(struct cvy_group *member) {
    cvy_net_links_free(member);
    void *net = atomic_exchange(&member->net.net, NULL);
    if (!net)
        return;
    ops(member)->close(net);
    memory(member)->release(member->device, member->net.scratch);
}

/* ---- reductions ---------------------------------------------------------------------------------- */

struct sum { /* a reduction, as this member does it */
    const struct cvy_reduction *what;
    void *net;
    size_t at, n;           /* its own slice */
    size_t longest;         /* slice */
    const float **partials; /* of its own slice */
    float *others, *inner,
        *root;       /* in scratch: what it receives, nodes of the tree, and the sum if nobody wants it */
    float *unwanted; /* slices of others, when it wants no result */
};

static size_t slice(const struct cvy_group *me, const struct cvy_reduction *what, int member, size_t *n) {
    size_t at = cvy_slice_begin(what->n, member, me->hub->n);
    *n = cvy_slice_begin(what->n, member + 1, me->hub->n) - at;
    return at;
}

static cvy_status reserve(struct cvy_group *me, size_t n_bytes) {
    struct cvy_net_state *state = &me->net;
    if (state->scratch_bytes >= n_bytes)
        return CVY_OK;
    memory(me)->release(me->device, state->scratch);
    state->scratch = NULL;
    state->scratch_bytes = 0;
    CVY_TRY(memory(me)->alloc(me->device, n_bytes, (void **)&state->scratch));
    state->scratch_bytes = n_bytes;
    return CVY_OK;
}

/* The scratch: received partial sums, inner nodes, root, unwanted slices. */
static cvy_status make_room(struct cvy_group *me, const struct cvy_reduction *what, struct sum *out) {
    const struct cvy_partial *partials = what->partials;
    size_t n_others = 0, n_inner;
    *out = (struct sum){.what = what, .net = atomic_load(&me->net.net), .partials = me->partials};
    if (what->n_partials > CVY_MAX_PARTIALS)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED,
                        "%s: %d partial sums, more than %d: take fewer shards or devices", what->name,
                        what->n_partials, CVY_MAX_PARTIALS);
    out->at = slice(me, what, me->rank, &out->n);
    for (int m = 0; m < me->hub->n; m++) {
        size_t n;
        (void)slice(me, what, m, &n);
        out->longest = n > out->longest ? n : out->longest;
    }
    for (int32_t p = 0; p < what->n_partials; p++)
        n_others += partials[p].device != me->rank;
    CVY_TRY(cvy_tree_plan(what->n_shards, partials, what->n_partials, me->n_adds));
    n_inner = cvy_device_tree_inner(me->n_adds, what->n_partials);
    CVY_TRY(reserve(me, (n_others + n_inner + 2) * out->longest * sizeof(float)));
    out->others = me->net.scratch;
    out->inner = out->others + n_others * out->longest;
    out->root = what->result ? what->result + out->at : out->inner + n_inner * out->longest;
    out->unwanted = out->inner + (n_inner + 1) * out->longest;
    return CVY_OK;
}

static cvy_status lay_out(struct cvy_group *me, const struct cvy_reduction *what, struct sum *out) {
    const struct cvy_partial *partials = what->partials;
    CVY_TRY(make_room(me, what, out));
    for (int32_t p = 0, mine = 0, other = 0; p < what->n_partials; p++) {
        if (partials[p].device == me->rank)
            out->partials[p] = what->mine[mine++] + out->at;
        else
            out->partials[p] = out->others + (size_t)other++ * out->longest;
    }
    return CVY_OK;
}

static cvy_status reserve_for(struct cvy_group *me, const struct cvy_reduction *what) {
    struct sum sum;
    return make_room(me, what, &sum);
}

static cvy_status pass(struct cvy_group *me, const struct sum *s, const float *from, size_t n, int to) {
    return n ? ops(me)->send(s->net, from, n * sizeof(float), to) : CVY_OK;
}

static cvy_status take(struct cvy_group *me, const struct sum *s, float *at, size_t n, int from) {
    return n ? ops(me)->recv(s->net, at, n * sizeof(float), from) : CVY_OK;
}

cvy_status cvy_net_end_after(struct cvy_group *me, void *net, cvy_status status) {
    struct cvy_error error;
    cvy_error_save(&error, status);
    cvy_status ended = ops(me)->end(net);
    return status == CVY_OK ? ended : cvy_error_restore(&error);
}

/* All partial sums go to those who add up their slices. */
static cvy_status scatter(struct cvy_group *me, const struct sum *s) {
    for (int32_t p = 0, mine = 0; p < s->what->n_partials; p++) {
        int owner = s->what->partials[p].device;
        if (owner != me->rank) {
            CVY_TRY(take(me, s, (float *)s->partials[p], s->n, owner));
            continue;
        }
        for (int m = 0; m < me->hub->n; m++) {
            size_t n, at = slice(me, s->what, m, &n);
            if (m != me->rank)
                CVY_TRY(pass(me, s, s->what->mine[mine] + at, n, m));
        }
        mine++;
    }
    return CVY_OK;
}

static cvy_status add_up(struct cvy_group *me, const struct sum *s) {
    if (s->n == 0)
        return CVY_OK;
    if (s->what->n_partials == 1)
        return s->root == s->partials[0]
                   ? CVY_OK
                   : memory(me)->copy(me->device, s->root, s->partials[0], s->n * sizeof(float));
    return cvy_device_tree_add(me->device, &(struct cvy_device_tree){.n_partials = s->what->n_partials,
                                                                     .n_adds = me->n_adds,
                                                                     .partials = s->partials,
                                                                     .n = s->n,
                                                                     .scratch = s->inner,
                                                                     .root = s->root});
}

/* The sums of all slices go to everybody. */
static cvy_status gather(struct cvy_group *me, const struct sum *s) {
    for (int m = 0; m < me->hub->n; m++) {
        size_t n, at = slice(me, s->what, m, &n);
        if (m == me->rank)
            continue;
        CVY_TRY(pass(me, s, s->root, s->n, m));
        CVY_TRY(take(me, s, s->what->result ? s->what->result + at : s->unwanted, n, m));
    }
    return CVY_OK;
}

static cvy_status reduce(struct cvy_group *me, int slot, const struct cvy_reduction *what) {
    struct sum sum;
    (void)slot;
    CVY_TRY(cvy_hub_check(me, what->name, 0));
    CVY_TRY(lay_out(me, what, &sum));
    CVY_TRY(ops(me)->begin(sum.net));
    CVY_TRY(cvy_net_end_after(me, sum.net, scatter(me, &sum)));
    CVY_TRY(add_up(me, &sum));
    CVY_TRY(ops(me)->begin(sum.net));
    return cvy_net_end_after(me, sum.net, gather(me, &sum));
}

/* ---- reductions in the network's own order ------------------------------------------------------------ */

/* Room for the sum of a member's own partial sums. */
static cvy_status reserve_own(struct cvy_group *me, const struct cvy_reduction *what) {
    return reserve(me, what->n * sizeof(float));
}

/* This member's partial sums, one after the other: in *sum, which is the only one, or in scratch. */
static cvy_status add_own(struct cvy_group *me, const struct cvy_reduction *what, const float **sum) {
    int n_mine = 0;
    for (int32_t p = 0; p < what->n_partials; p++)
        n_mine += what->partials[p].device == me->rank;
    if (n_mine == 0)
        return CVY_FAIL(CVY_ERR_FAILED, "%s: member %d has no partial sum", what->name, me->rank);
    *sum = what->mine[0];
    for (int k = 1; k < n_mine; k++) {
        const struct cvy_backend *backend = me->device->backend;
        CVY_TRY(backend->add(me->device, me->net.scratch, *sum, what->mine[k], what->n));
        *sum = me->net.scratch;
    }
    return CVY_OK;
}

static cvy_status reduce_fast(struct cvy_group *me, int slot, const struct cvy_reduction *what) {
    const float *sum;
    (void)slot;
    CVY_TRY(cvy_hub_check(me, what->name, 0));
    CVY_TRY(reserve_own(me, what));
    CVY_TRY(add_own(me, what, &sum));
    return ops(me)->sum(atomic_load(&me->net.net), sum, what->result ? what->result : me->net.scratch,
                        what->n);
}

/* ---- broadcasts ----------------------------------------------------------------------------------- */

static cvy_status pass_on(struct cvy_group *me, void *net, int root, void *bytes, size_t n_bytes) {
    if (me->rank != root)
        return ops(me)->recv(net, bytes, n_bytes, root);
    for (int m = 0; m < me->hub->n; m++) {
        if (m != root)
            CVY_TRY(ops(me)->send(net, bytes, n_bytes, m));
    }
    return CVY_OK;
}

static cvy_status broadcast(struct cvy_group *me, int root, void *bytes, size_t n_bytes, const char *name) {
    void *net = atomic_load(&me->net.net);
    CVY_TRY(cvy_hub_check(me, name, 0));
    if (root < 0 || root >= me->hub->n)
        return CVY_FAIL(CVY_ERR_FAILED, "%s: there is no member %d among %d", name, root, me->hub->n);
    if (n_bytes == 0)
        return CVY_OK;
    CVY_TRY(ops(me)->begin(net));
    return cvy_net_end_after(me, net, pass_on(me, net, root, bytes, n_bytes));
}

/* ---- the tables ------------------------------------------------------------------------------------ */

static const struct cvy_device_transport net = {
    .name = "net",
    .attach = attach,
    .open = open_net,
    .reserve = reserve_for,
    .reduce = reduce,
    .broadcast = broadcast,
    .link_open = cvy_net_link_open,
    .send = cvy_net_send,
    .recv = cvy_net_recv,
};

static const struct cvy_device_transport fast_net = {
    .name = "net, in its own order",
    .attach = attach,
    .open = open_net,
    .reserve = reserve_own,
    .reduce = reduce_fast,
    .broadcast = broadcast,
    .link_open = cvy_net_link_open,
    .send = cvy_net_send,
    .recv = cvy_net_recv,
};

const struct cvy_device_transport *cvy_net_find(const struct cvy_device *device, const char *places, int n,
                                                bool is_fast) {
    if (!device->backend->net)
        return NULL;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) {
            if (memcmp(places + (size_t)i * CVY_NET_PLACE, places + (size_t)k * CVY_NET_PLACE,
                       CVY_NET_PLACE) == 0)
                return NULL;
        }
    }
    return is_fast ? &fast_net : &net;
}
