/* Messages from device to device. The sender copies into a ring in its own memory, the receiver out of it; heads and
   counters of the ring are the host's, as with `threads`, and say that a copy was enqueued. The marks of a place say
   that it was done: a message is read after `sent`, its place written again after `received`. */
#include "comm/peers.h"

#include "rt/backend.h"

#include <stdatomic.h>
#include <stdlib.h>

void cvy_peer_ring_free(struct cvy_peer_ring *ring) {
    if (!ring)
        return;
    const struct cvy_peers *ops = ring->owner->backend->peers;
    for (int k = 0; k < ring->capacity; k++) {
        ops->unmark(ring->sent ? ring->sent[k] : NULL);
        ops->unmark(ring->received ? ring->received[k] : NULL);
    }
    ops->release(ring->owner, ring->memory);
    free(ring->sent);
    free(ring->received);
    free(ring);
}

static cvy_status fill(struct cvy_peer_ring *ring, size_t n_bytes) {
    size_t capacity = (size_t)ring->capacity;
    ring->place_bytes = cvy_align_up(n_bytes, CVY_ALIGN);
    CVY_TRY(CVY_ALLOC(ring->sent, capacity));
    CVY_TRY(CVY_ALLOC(ring->received, capacity));
    return ring->owner->backend->peers->alloc(ring->owner, capacity * ring->place_bytes,
                                              (void **)&ring->memory);
}

/* By the sender: its memory. The receiver looks at the ring once a message was counted. */
cvy_status cvy_peers_link_open(struct cvy_group *me, int number, int from, int to, size_t n_bytes,
                               int capacity) {
    const struct cvy_link_form form = {
        .from = from, .to = to, .n_bytes = n_bytes, .capacity = capacity, .is_on_device = true};
    struct cvy_link *link;
    struct cvy_peer_ring *ring;
    CVY_TRY(cvy_link_open_as(me, number, &form, &link));
    if (me->rank != from || link->on_device)
        return CVY_OK;
    CVY_TRY(CVY_ALLOC(ring, 1));
    ring->owner = me->device;
    ring->capacity = capacity;
    cvy_status status = fill(ring, n_bytes);
    if (status != CVY_OK) {
        cvy_peer_ring_free(ring);
        return status;
    }
    link->on_device = ring;
    return CVY_OK;
}

/* Copies between the pieces and a place of the ring. */
static cvy_status copy(struct cvy_group *me, char *at, const struct cvy_piece *pieces, int n, bool is_send) {
    const struct cvy_peers *ops = me->device->backend->peers;
    for (int i = 0; i < n; i++) {
        void *piece = pieces[i].at;
        if (pieces[i].n_bytes > 0)
            CVY_TRY(ops->copy(me->device, is_send ? at : piece, is_send ? piece : at, pieces[i].n_bytes));
        at += pieces[i].n_bytes;
    }
    return CVY_OK;
}

cvy_status cvy_peers_send(struct cvy_group *me, int number, int32_t tag, const struct cvy_piece *pieces,
                          int n, const char *name) {
    const struct cvy_peers *ops = me->device->backend->peers;
    struct cvy_link *link;
    CVY_TRY(cvy_link_begin_send(me, number, tag, cvy_pieces_bytes(pieces, n), name, &link));
    struct cvy_peer_ring *ring = link->on_device;
    uint64_t k = atomic_load(&link->sent.value), place = k % (uint64_t)ring->capacity;
    if (k >= (uint64_t)ring->capacity)
        CVY_TRY(ops->follow(me->device, ring->received[place]));
    CVY_TRY(copy(me, ring->memory + place * ring->place_bytes, pieces, n, true));
    CVY_TRY(ops->mark(me->device, &ring->sent[place]));
    cvy_link_end_send(link);
    return CVY_OK;
}

cvy_status cvy_peers_recv(struct cvy_group *me, int number, int32_t tag, const struct cvy_piece *pieces,
                          int n, const char *name) {
    const struct cvy_peers *ops = me->device->backend->peers;
    struct cvy_link *link;
    CVY_TRY(cvy_link_begin_recv(me, number, tag, cvy_pieces_bytes(pieces, n), name, &link));
    struct cvy_peer_ring *ring = link->on_device;
    uint64_t place = atomic_load(&link->received.value) % (uint64_t)ring->capacity;
    CVY_TRY(ops->follow(me->device, ring->sent[place]));
    CVY_TRY(copy(me, ring->memory + place * ring->place_bytes, pieces, n, false));
    CVY_TRY(ops->mark(me->device, &ring->received[place]));
    cvy_link_end_recv(link);
    return CVY_OK;
}
