/* Broadcast between processes: a chain that begins at the root's process, each passing on piece by piece, so that every
   process sends and receives each byte once, however many there are. A broadcast of nothing is a barrier. */
#include "comm/party.h"

#include <stdatomic.h>
#include <string.h>

struct chain {
    struct cvy_peer *before, *after; /* NULL at the ends */
    int root;                        /* its index among the members here; -1: it is elsewhere */
};

static struct chain chain_of(struct cvy_party *party, int root) {
    int n = party->n_peers, first = cvy_party_peer_of(party, root);
    int position = (party->me - first + n) % n;
    return (struct chain){.before = position == 0 ? NULL : &party->peers[(party->me + n - 1) % n],
                          .after = position == n - 1 ? NULL : &party->peers[(party->me + 1) % n],
                          .root = position == 0 ? root - party->peers[party->me].first : -1};
}

/* Copies a piece to all members here but the root. */
static void spread(const struct cvy_party *party, const struct cvy_round *op, int root, size_t at, size_t n,
                   const void *piece) {
    for (int m = 0; m < party->peers[party->me].n; m++) {
        if (m != root)
            memcpy((unsigned char *)op->posts[m].broadcast.bytes + at, piece, n);
    }
}

/* One piece, when it is there and the next process has room for it. */
static cvy_status pass_on(struct cvy_party *party, const struct cvy_round *op, const struct chain *chain,
                          bool *moved) {
    const struct cvy_broadcast *what = &op->posts[0].broadcast;
    size_t at = party->n_spread * party->piece_bytes;
    size_t n = what->n_bytes - at < party->piece_bytes ? what->n_bytes - at : party->piece_bytes;
    uint64_t number = atomic_load(&party->done.value);
    cvy_status status = CVY_OK;
    void *room = chain->after ? cvy_lane_room(chain->after->asking) : NULL;
    const void *piece = chain->before ? cvy_lane_question(chain->before->answering, n, number, &status)
                                      : (unsigned char *)op->posts[chain->root].broadcast.bytes + at;
    if (!piece || (chain->after && !room))
        return status;
    spread(party, op, chain->root, at, n, piece);
    if (chain->after) {
        memcpy(room, piece, n);
        cvy_lane_ask(chain->after->asking, n, number);
    }
    if (chain->before)
        cvy_lane_answer(chain->before->answering, 0);
    party->n_spread++;
    *moved = true;
    return CVY_OK;
}

cvy_status cvy_party_broadcast_step(struct cvy_party *party, const struct cvy_round *op, bool *moved,
                                    bool *is_done) {
    const struct cvy_broadcast *what = &op->posts[0].broadcast;
    size_t n_pieces = (what->n_bytes + party->piece_bytes - 1) / party->piece_bytes;
    *is_done = n_pieces == 0;
    if (n_pieces == 0)
        return CVY_OK;
    struct chain chain = chain_of(party, what->root);
    if (chain.before)
        CVY_TRY(cvy_party_open_lane(party, chain.before, false));
    if (chain.after)
        CVY_TRY(cvy_party_open_lane(party, chain.after, true));
    struct cvy_peer *awaited = chain.before && party->n_spread < n_pieces ? chain.before : chain.after;
    atomic_store(&party->awaited, awaited ? (int)(awaited - party->peers) : -1);
    if (party->n_spread < n_pieces)
        CVY_TRY(pass_on(party, op, &chain, moved));
    struct cvy_lane *asking = chain.after ? chain.after->asking : NULL;
    cvy_status status = CVY_OK;
    while (asking && cvy_lane_answered(asking, 0, atomic_load(&party->done.value), &status))
        cvy_lane_take(asking);
    *is_done = party->n_spread == n_pieces && (!asking || asking->taken == asking->asked);
    return status;
}
