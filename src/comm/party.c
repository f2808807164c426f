/* Opening and closing a party, and what its members do: post and wait. */
#include "comm/party.h"

#include "base/text.h"
#include "comm/courier.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ------------------------------------------------------------------------------------------- */

/* Pieces between machines are what the network wants, but not so large that the lanes of many processes fill the
   memory. All processes of the group find the same. */
static size_t piece_bytes(const struct cvy_party *party) {
    enum { FEW = 8 };
    size_t n_bytes = party->courier->network->piece_bytes;
    bool is_near = true;
    for (int i = 0; i < party->n_peers; i++)
        is_near &= i == party->me || party->courier->is_near[party->peers[i].rank];
    for (int n = FEW; !is_near && n < party->n_peers && n_bytes > CVY_PIECE_NEAR; n *= 2)
        n_bytes /= 2;
    return is_near && n_bytes > CVY_PIECE_NEAR ? CVY_PIECE_NEAR : n_bytes;
}

/* Cuts the members into processes. */
static cvy_status fill_peers(struct cvy_party *party, const int32_t *ranks) {
    struct cvy_hub *hub = party->hub;
    for (int m = 0; m < hub->n; m++) {
        if (m == 0 || ranks[m] != ranks[m - 1])
            party->n_peers++;
    }
    CVY_TRY(
        cvy_pool_alloc(&hub->pool, (size_t)party->n_peers * sizeof *party->peers, (void **)&party->peers));
    struct cvy_peer *peer = party->peers - 1;
    for (int m = 0; m < hub->n; m++) {
        if (m == 0 || ranks[m] != ranks[m - 1]) {
            *++peer = (struct cvy_peer){.rank = ranks[m], .first = m};
            CVY_TRY(cvy_pool_alloc(&hub->pool, CVY_HEARD * sizeof *peer->heard, (void **)&peer->heard));
            if (peer->rank == party->courier->rank)
                party->me = (int)(peer - party->peers);
        }
        peer->n++;
    }
    party->piece_bytes = piece_bytes(party);
    return CVY_OK;
}

static cvy_status fill_ops(struct cvy_party *party) {
    struct cvy_hub *hub = party->hub;
    size_t n_local = (size_t)party->peers[party->me].n, n = (size_t)hub->n;
    struct cvy_post *posts;
    CVY_TRY(cvy_pool_alloc(&hub->pool, CVY_OPS * n_local * sizeof *posts, (void **)&posts));
    for (size_t k = 0; k < CVY_OPS; k++)
        party->rounds[k].posts = posts + k * n_local;
    CVY_TRY(cvy_pool_alloc(&hub->pool, n * sizeof *party->came, (void **)&party->came));
    struct cvy_reducing *reducing;
    CVY_TRY(cvy_pool_alloc(&hub->pool, sizeof *reducing, (void **)&reducing));
    CVY_TRY(cvy_pool_alloc(&hub->pool, n * sizeof(float *), (void **)&reducing->results));
    CVY_TRY(cvy_pool_alloc(&hub->pool, 2 * n * sizeof(float *), (void **)&reducing->result_at));
    party->reducing = reducing;
    return CVY_OK;
}

cvy_status cvy_party_open(struct cvy_hub *hub, struct cvy_courier *courier, uint32_t number,
                          const int32_t *ranks, struct cvy_party **out) {
    struct cvy_party *party; /* everything lies in the hub's pool, and ends with it */
    CVY_TRY(cvy_pool_alloc(&hub->pool, sizeof *party, (void **)&party));
    party->hub = hub;
    party->courier = courier;
    party->number = number;
    atomic_store(&party->awaited, -1);
    CVY_TRY(fill_peers(party, ranks));
    CVY_TRY(fill_ops(party));
    CVY_TRY(cvy_counter_init(&party->done));
    cvy_status status = cvy_counter_init(&party->settled);
    if (status != CVY_OK) {
        cvy_counter_free(&party->done);
        return status;
    }
    pthread_mutex_init(&party->lock, NULL);
    *out = party;
    return CVY_OK;
}

void cvy_party_close(struct cvy_party *party) {
    enum { PATIENCE_S = 2 };
    struct cvy_hub *hub = party->hub;
    for (int i = 0; i < CVY_MAX_LINKS; i++) {
        struct cvy_link *link = atomic_load(&hub->links.link[i]);
        if (link && link->bell) /* its ferry has it */
            atomic_store(&hub->links.link[i], NULL);
    }
    atomic_store(&party->is_closing, true);
    cvy_courier_ring(party->courier);
    if (cvy_counter_wait(&party->settled, 2, hub->timeout_s, &hub->is_aborted, "close") != CVY_OK) {
        cvy_hub_stop(hub, "closed"); /* nobody takes it */
        if (cvy_counter_wait(&party->settled, 2, PATIENCE_S, NULL, "close") != CVY_OK)
            return; /* the thread is stuck in the network: what it may still touch stays */
    }
    pthread_mutex_lock(&party->courier->lock); /* whoever counted has left the counter */
    pthread_mutex_unlock(&party->courier->lock);
    cvy_counter_free(&party->done);
    cvy_counter_free(&party->settled);
    pthread_mutex_destroy(&party->lock);
    hub->party = NULL;
}

/* ---- failing ------------------------------------------------------------------------------------------- */

void cvy_party_wake(struct cvy_party *party) {
    cvy_counter_wake(&party->done);
    cvy_counter_wake(&party->settled);
    cvy_courier_ring(party->courier);
}

void cvy_party_tell(struct cvy_party *party, const char *reason) {
    if (party->tell)
        party->tell(party, reason);
}

void cvy_party_note(struct cvy_party *party, uint64_t number, const char *name) {
    if (party->note)
        party->note(party, number, name);
}

/* Who holds up the operation at work: "member 2, 3". */
static void print_missing(struct cvy_party *party, struct cvy_text *out) {
    int awaited = atomic_load(&party->awaited);
    cvy_hub_print_missing(party->hub, party->came, atomic_load(&party->done.value) + 1, out);
    if (out->n == 0 && awaited >= 0)
        cvy_text_printf(out, "data of member %d (rank %d)", party->peers[awaited].first,
                        party->peers[awaited].rank);
}

/* Gives the courier the time to let go of this member's memory. */
static void settle(struct cvy_party *party) {
    struct cvy_error error;
    cvy_error_save(&error, CVY_ERR_LOST);
    (void)cvy_counter_wait(&party->settled, 1, 1, NULL, "settle");
    (void)cvy_error_restore(&error);
}

/* ---- posting and waiting -------------------------------------------------------------------------------- */

uint64_t cvy_party_post(struct cvy_group *me, const struct cvy_post *post) {
    struct cvy_party *party = me->hub->party;
    uint64_t k = me->n_ops++;
    struct cvy_round *op = &party->rounds[k % CVY_OPS];
    op->posts[me->rank - party->peers[party->me].first] = *post;
    atomic_store(&party->came[me->rank], k + 1);
    atomic_fetch_add(&op->n_arrived, 1);
    cvy_courier_ring(party->courier);
    return k;
}

cvy_status cvy_party_wait(struct cvy_group *me, uint64_t op, uint64_t round, const char *name) {
    struct cvy_hub *hub = me->hub;
    struct cvy_party *party = hub->party;
    struct cvy_bell *bell = &party->courier->bell;
    int64_t start = cvy_now_ns();
    cvy_party_note(party, round, name);
    atomic_fetch_add(&bell->n_waiting, 1);
    cvy_status status = cvy_hub_wait(me, &party->done, op + 1, name);
    atomic_fetch_sub(&bell->n_waiting, 1);
    if (status == CVY_OK)
        return CVY_OK;
    if (status != CVY_ERR_LOST) {
        (void)cvy_hub_give_up(me);
        settle(party);
        return status;
    }
    double waited_s = (double)(cvy_now_ns() - start) * 1e-9;
    status = cvy_hub_check(me, name, waited_s);
    if (status == CVY_OK) {
        struct cvy_text missing = {0};
        print_missing(party, &missing);
        status = cvy_hub_lose(me, name, round, waited_s, &missing);
    }
    settle(party);
    return status;
}

/* ---- links ----------------------------------------------------------------------------------------------- */

int cvy_party_peer_of(const struct cvy_party *party, int member) {
    int i = party->n_peers - 1;
    while (party->peers[i].first > member)
        i--;
    return i;
}

struct cvy_peer *cvy_party_peer(struct cvy_party *party, int rank) {
    for (int i = 0; i < party->n_peers; i++) {
        if (party->peers[i].rank == rank)
            return &party->peers[i];
    }
    return NULL;
}

cvy_status cvy_party_add_link(struct cvy_party *party, int number, struct cvy_link *link) {
    int from = cvy_party_peer_of(party, link->form.from), to = cvy_party_peer_of(party, link->form.to);
    if (from == to)
        return CVY_OK;
    struct cvy_ferry *ferry;
    bool is_out = from == party->me;
    cvy_status status =
        cvy_ferry_make(link, party->number, number, party->peers[is_out ? to : from].rank, is_out, &ferry);
    if (status != CVY_OK) {
        cvy_link_free(link);
        return status;
    }
    memset(link->ring, 0, (size_t)link->form.capacity * link->place_bytes); /* touches the pages */
    link->bell = &party->courier->bell;
    pthread_mutex_lock(&party->lock);
    ferry->next = party->fresh;
    party->fresh = ferry;
    pthread_mutex_unlock(&party->lock);
    cvy_courier_ring(party->courier);
    return CVY_OK;
}
