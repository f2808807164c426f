/* Messages over networks of the devices: each link has a network of its own, of two. The sender packs a message into a
   ring in its own memory and sends it from there in the network's own stream, since a send waits for its receive: the
   device goes on meanwhile, and messages that cross between two stages never wait for each other. The heads go through
   the hosts, so that both ends agree on tag and size, with the group's deadline, before a device waits. */
#include "comm/net.h"

#include "rt/backend.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SENDER, RECEIVER, N_ENDS, NAME_TAG = -1 };

struct cvy_net_link {
    int number, rank; /* rank: SENDER or RECEIVER */
    int capacity;
    size_t n_bytes, place_bytes; /* n_bytes: of the largest message */
    void *net;
    char *memory; /* of the sender `capacity` places, of the receiver one, once it must cut a message up */
    uint64_t k;   /* messages so far */
    void **sent;  /* [capacity], of the sender: the marks of its places */
    struct cvy_net_link *next;
};

static const struct cvy_net *ops(const struct cvy_group *me) { return me->device->backend->net; }
static const struct cvy_peers *memory(const struct cvy_group *me) { return me->device->backend->peers; }

static struct cvy_net_link *find(struct cvy_group *me, int number) {
    struct cvy_net_link *link = atomic_load(&me->net.links);
    while (link && link->number != number)
        link = link->next;
    return link;
}

/* ---- opening and closing ----------------------------------------------------------------------------------- */

static void free_link(struct cvy_group *me, struct cvy_net_link *link) {
    ops(me)->close(link->net);
    for (int k = 0; link->sent && k < link->capacity; k++)
        memory(me)->unmark(link->sent[k]);
    memory(me)->release(me->device, link->memory);
    free(link->sent);
    free(link);
}

void cvy_net_links_free(struct cvy_group *member) {
    struct cvy_net_link *link = atomic_exchange(&member->net.links, NULL);
    while (link) {
        struct cvy_net_link *next = link->next;
        free_link(member, link);
        link = next;
    }
}

void cvy_net_links_abort(struct cvy_group *member) {
    for (struct cvy_net_link *link = atomic_load(&member->net.links); link; link = link->next)
        ops(member)->abort(link->net);
}

static cvy_status pass_name(struct cvy_group *me, const struct cvy_net_link *link, char id[CVY_NET_ID]) {
    const struct cvy_transport *hosts = me->net.hosts;
    const struct cvy_piece piece = {id, CVY_NET_ID};
    if (link->rank == RECEIVER)
        return hosts->recv(me, link->number, NAME_TAG, &piece, 1, "the link's name");
    CVY_TRY(ops(me)->make_id(id));
    return hosts->send(me, link->number, NAME_TAG, &piece, 1, "the link's name");
}

/* One byte: the first message between two may have to connect them, which waits for both hosts. */
static cvy_status try_link(struct cvy_group *me, const struct cvy_net_link *link) {
    CVY_TRY(ops(me)->begin(link->net));
    cvy_status status = link->rank == SENDER ? ops(me)->send(link->net, link->memory, 1, RECEIVER)
                                             : ops(me)->recv(link->net, link->memory, 1, SENDER);
    return cvy_net_end_after(me, link->net, status);
}

static cvy_status fill(struct cvy_group *me, struct cvy_net_link *link) {
    char id[CVY_NET_ID] = {0};
    size_t places = link->rank == SENDER ? (size_t)link->capacity : 1;
    link->place_bytes = cvy_align_up(link->n_bytes + !link->n_bytes, CVY_ALIGN);
    CVY_TRY(CVY_ALLOC(link->sent, (size_t)link->capacity));
    CVY_TRY(memory(me)->alloc(me->device, places * link->place_bytes, (void **)&link->memory));
    CVY_TRY(pass_name(me, link, id));
    CVY_TRY(ops(me)->open(me->device, id, link->rank, N_ENDS, &me->hub->is_aborted, &link->net));
    return try_link(me, link);
}

cvy_status cvy_net_link_open(struct cvy_group *me, int number, int from, int to, size_t n_bytes,
                             int capacity) {
    struct cvy_net_link *link;
    CVY_TRY(me->net.hosts->link_open(me, number, from, to, CVY_NET_ID, capacity));
    if (find(me, number))
        return CVY_OK;
    CVY_TRY(CVY_ALLOC(link, 1));
    *link = (struct cvy_net_link){.number = number,
                                  .rank = me->rank == from ? SENDER : RECEIVER,
                                  .capacity = capacity,
                                  .n_bytes = n_bytes,
                                  .next = atomic_load(&me->net.links)};
    cvy_status status = fill(me, link);
    if (status != CVY_OK) {
        if (link->net)
            ops(me)->abort(link->net);
        free_link(me, link);
        return status;
    }
    atomic_store(&me->net.links, link);    /* by this thread alone */
    return cvy_hub_check(me, "a link", 0); /* who gave up before did not see it */
}

/* ---- messages ---------------------------------------------------------------------------------------------- */

/* Between the pieces and the message in one. */
static cvy_status copy(struct cvy_group *me, char *at, const struct cvy_piece *pieces, int n, bool is_send) {
    for (int i = 0; i < n; i++) {
        void *piece = pieces[i].at;
        if (pieces[i].n_bytes > 0)
            CVY_TRY(
                memory(me)->copy(me->device, is_send ? at : piece, is_send ? piece : at, pieces[i].n_bytes));
        at += pieces[i].n_bytes;
    }
    return CVY_OK;
}

static cvy_status find_for(struct cvy_group *me, int number, size_t n_bytes, const char *name,
                           struct cvy_net_link **out) {
    *out = find(me, number);
    if (!*out || (*out)->n_bytes < n_bytes)
        return CVY_FAIL(CVY_ERR_FAILED, "%s: member %d has no link %d for messages of %zu bytes", name,
                        me->rank, number, n_bytes);
    return CVY_OK;
}

cvy_status cvy_net_send(struct cvy_group *me, int number, int32_t tag, const struct cvy_piece *pieces, int n,
                        const char *name) {
    uint64_t n_bytes = cvy_pieces_bytes(pieces, n);
    struct cvy_net_link *link;
    CVY_TRY(find_for(me, number, n_bytes, name, &link));
    const struct cvy_piece head = {&n_bytes, sizeof n_bytes};
    CVY_TRY(me->net.hosts->send(me, number, tag, &head, 1, name));
    if (n_bytes == 0)
        return CVY_OK;
    uint64_t k = link->k++, place = k % (uint64_t)link->capacity;
    char *at = link->memory + place * link->place_bytes;
    if (k >= (uint64_t)link->capacity)
        CVY_TRY(memory(me)->follow(me->device, link->sent[place]));
    CVY_TRY(copy(me, at, pieces, n, true));
    return ops(me)->post(link->net, at, n_bytes, RECEIVER, &link->sent[place]);
}

static cvy_status check_head(struct cvy_group *me, uint64_t wanted, uint64_t got, const char *name) {
    if (wanted == got)
        return CVY_OK;
    CVY_FAIL(CVY_ERR_LOST,
             "%s: member %d expected %llu bytes and %llu were sent: they must run the same program", name,
             me->rank, (unsigned long long)wanted, (unsigned long long)got);
    return cvy_hub_give_up(me);
}

cvy_status cvy_net_recv(struct cvy_group *me, int number, int32_t tag, const struct cvy_piece *pieces, int n,
                        const char *name) {
    uint64_t n_bytes = cvy_pieces_bytes(pieces, n), n_sent = 0;
    const struct cvy_piece head = {&n_sent, sizeof n_sent};
    struct cvy_net_link *link;
    CVY_TRY(find_for(me, number, n_bytes, name, &link));
    CVY_TRY(me->net.hosts->recv(me, number, tag, &head, 1, name));
    CVY_TRY(check_head(me, n_bytes, n_sent, name));
    if (n_bytes == 0)
        return CVY_OK;
    char *at = n == 1 ? pieces[0].at : link->memory;
    CVY_TRY(ops(me)->begin(link->net));
    CVY_TRY(cvy_net_end_after(me, link->net, ops(me)->recv(link->net, at, n_bytes, SENDER)));
    return n == 1 ? CVY_OK : copy(me, at, pieces, n, false);
}
