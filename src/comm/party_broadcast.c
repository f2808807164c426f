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

cvy_status cvy_party_broadcast_step(struct cvy_party *party, const struct cvy_round *op, bool *moved,
                                    bool *is_done) {
    const struct cvy_broadcast *what = &op->posts[0].broadcast;
    struct chain chain = chain_of(party, what->root);
    size_t n_pieces = (what->n_bytes + CVY_PIECE_BYTES - 1) / CVY_PIECE_BYTES;
    int32_t tag = (int32_t)(atomic_load(&party->done.value) & INT32_MAX);
    if (n_pieces > 0 && chain.before)
        CVY_TRY(cvy_party_open_rings(party, chain.before));
    if (n_pieces > 0 && chain.after)
        CVY_TRY(cvy_party_open_rings(party, chain.after));
    if (party->n_spread < n_pieces) {
        size_t at = party->n_spread * CVY_PIECE_BYTES;
        size_t n = what->n_bytes - at < CVY_PIECE_BYTES ? what->n_bytes - at : CVY_PIECE_BYTES;
        cvy_status status = CVY_OK;
        void *room = chain.after ? cvy_ring_room(chain.after->sums_out) : NULL;
        const void *piece = chain.before ? cvy_ring_front(chain.before->sums_in, n, tag, &status)
                                         : (const unsigned char *)op->posts[chain.root].broadcast.bytes + at;
        CVY_TRY(status);
        if (chain.before)
            atomic_store(&party->awaited, (int)(chain.before - party->peers));
        if (piece && (room || !chain.after)) {
            spread(party, op, chain.root, at, n, piece);
            if (chain.after) {
                memcpy(room, piece, n);
                cvy_ring_send(chain.after->sums_out, n, tag);
            }
            if (chain.before)
                cvy_ring_pop(chain.before->sums_in);
            party->n_spread++;
            *moved = true;
        }
    }
    *is_done = party->n_spread == n_pieces;
    return CVY_OK;
}
