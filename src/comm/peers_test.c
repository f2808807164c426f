/* The device transport `peers` through the suite for all transports, on devices that do at once what they are told:
   then a mark has happened when it was made, and only what is copied and added where can be wrong. */
#include "comm/peers.h"
#include "comm/transport_conformance.h"
#include "rt/backend.h"

#include <stdlib.h>
#include <string.h>

static const struct cvy_device_transport *peers;

/* ---- a device that does everything at once ---------------------------------------------------------- */

static bool reaches(struct cvy_device *me, struct cvy_device *other) { return me != other; }

static cvy_status mark(struct cvy_device *me, void **out) {
    (void)me;
    if (!*out)
        *out = malloc(1);
    return *out ? CVY_OK : CVY_FAIL(CVY_ERR_MEMORY, "out of memory");
}

/* A mark that was never made would be a null pointer here. */
static cvy_status follow(struct cvy_device *me, void *of) {
    (void)me;
    return of ? CVY_OK : CVY_FAIL(CVY_ERR_FAILED, "no mark to follow");
}

static cvy_status copy(struct cvy_device *me, void *to, const void *from, size_t n_bytes) {
    (void)me;
    memcpy(to, from, n_bytes);
    return CVY_OK;
}

static cvy_status alloc(struct cvy_device *me, size_t n_bytes, void **out) {
    (void)me;
    *out = malloc(n_bytes + !n_bytes);
    return *out ? CVY_OK : CVY_FAIL(CVY_ERR_MEMORY, "out of memory");
}

static void release(struct cvy_device *me, void *memory) {
    (void)me;
    free(memory);
}

static cvy_status add(struct cvy_device *me, float *sum, const float *a, const float *b, size_t n) {
    (void)me;
    for (size_t i = 0; i < n; i++)
        sum[i] = a[i] + b[i];
    return CVY_OK;
}

static const struct cvy_peers instant_peers = {.reaches = reaches,
                                               .mark = mark,
                                               .follow = follow,
                                               .copy = copy,
                                               .alloc = alloc,
                                               .unmark = free,
                                               .release = release};
static const struct cvy_backend instant = {.name = "instant", .add = add, .peers = &instant_peers};

/* ---- as a transport ----------------------------------------------------------------------------------- */

static struct cvy_device devices[MAX_MEMBERS];

static cvy_status open_group(const struct cvy_group_spec *spec, struct cvy_group **members) {
    CVY_TRY(cvy_hub_open(spec, members));
    for (int m = 0; m < spec->n; m++)
        peers->attach(members[m], &devices[m]);
    return CVY_OK;
}

/* The suite starts a reduction here and waits for it there: `reduce` is both, when it is waited for. */
static const struct cvy_reduction *started[MAX_MEMBERS][CVY_MAX_REDUCTIONS];

static cvy_status start(struct cvy_group *me, int slot, const struct cvy_reduction *what) {
    CVY_TRY(cvy_hub_check(me, what->name, 0));
    if (slot < 0 || slot >= CVY_MAX_REDUCTIONS || started[me->rank][slot])
        return CVY_FAIL(CVY_ERR_FAILED, "%s: slot %d is not free for a reduction", what->name, slot);
    started[me->rank][slot] = what;
    return CVY_OK;
}

static cvy_status wait_for(struct cvy_group *me, int slot) {
    if (slot < 0 || slot >= CVY_MAX_REDUCTIONS || !started[me->rank][slot])
        return CVY_FAIL(CVY_ERR_FAILED, "slot %d: wait for a reduction that was not started", slot);
    const struct cvy_reduction *what = started[me->rank][slot];
    started[me->rank][slot] = NULL;
    return peers->reduce(me, slot, what);
}

int main(void) {
    for (int d = 0; d < MAX_MEMBERS; d++)
        devices[d].backend = &instant;
    struct cvy_device *both[] = {&devices[0], &devices[1]};
    peers = cvy_peers_find(both, 2);
    struct cvy_device on_cpu = {.backend = cvy_backend_find("cpu")};
    struct cvy_device *mixed[] = {&devices[0], &on_cpu};
    if (!peers || cvy_peers_find(mixed, 2))
        return 1;
    struct cvy_transport transport = *cvy_transport_find("threads");
    transport.name = "peers";
    transport.open = open_group;
    transport.reduce_start = start;
    transport.reduce_wait = wait_for;
    transport.broadcast = peers->broadcast;
    transport.link_open = peers->link_open;
    transport.send = peers->send;
    transport.recv = peers->recv;
    _Alignas(64) unsigned char shared[SHARED_BYTES];
    struct suite suite = {.transport = &transport, .shared = shared};
    return transport_conformance(&suite);
}
