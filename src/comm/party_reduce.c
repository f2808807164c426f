/* All-reduce between processes: each owns a slice of the floats. A process adds the aligned subtrees that its members
   hold and asks the owner of each slice with them, piece by piece; it sums its own slice from what the others asked
   with and what its own members have, in the tree's order, and answers with the sum (or with nothing, where it is not
   wanted). All of it overlaps: a step does one piece of each kind where one can be done.

   A sum is written straight to the members' results and to the places of the questions, in one pass. A result may lie
   where a member's partial sum is: its sum comes back only after that partial sum went out. */
#include "comm/blocksum.h"
#include "comm/party.h"

#include <stdatomic.h>
#include <string.h>

/* ---- the plan of one reduction ----------------------------------------------------------------------------------- */

/* Puts the partial sums of one process, p .. end - 1, on a stack of their own: the nodes that are left. */
static int32_t own_nodes(const struct cvy_reduction *what, int32_t p, int32_t end,
                         struct cvy_tree_stack *stack, uint8_t *n_adds, int32_t *begin) {
    *stack = (struct cvy_tree_stack){.n_shards = what->n_shards};
    for (int32_t k = 0; p < end; p++, k++) {
        int32_t n = stack->n, adds = cvy_tree_push(stack, what->partials[p].first, what->partials[p].level);
        if (n_adds)
            n_adds[k] = (uint8_t)adds;
        if (begin && adds == 0)
            begin[n] = k;
    }
    return stack->n;
}

/* The members here: their partial sums in order. CVY_ERR_FAILED when they do not follow each other. */
static cvy_status collect_own(struct cvy_party *party, const struct cvy_round *op) {
    struct cvy_reducing *now = party->reducing;
    const struct cvy_peer *mine = &party->peers[party->me];
    const struct cvy_reduction *what = op->posts[0].reduction;
    now->n_own = now->n_results = 0;
    for (int32_t p = 0, k = 0, owner = -1; p < what->n_partials; p++, k++) {
        if (what->partials[p].device < owner || what->partials[p].device >= party->hub->n)
            return CVY_FAIL(CVY_ERR_FAILED,
                            "%s: partial sum %d belongs to member %d, after one of member %d of %d",
                            what->name, p, what->partials[p].device, owner, party->hub->n);
        if (what->partials[p].device != owner)
            k = 0;
        owner = what->partials[p].device;
        if (owner >= mine->first && owner < mine->first + mine->n)
            now->own[now->n_own++] = op->posts[owner - mine->first].reduction->mine[k];
    }
    for (int m = 0; m < mine->n; m++) {
        if (op->posts[m].reduction->result)
            now->results[now->n_results++] = op->posts[m].reduction->result;
    }
    return CVY_OK;
}

/* Goes through all partial sums, process by process: what each brings, and what a slice here is the sum of. */
static cvy_status plan_terms(struct cvy_party *party, const struct cvy_reduction *what) {
    struct cvy_reducing *now = party->reducing;
    struct cvy_partial terms[CVY_MAX_PARTIALS];
    int32_t most = 1, p = 0;
    now->n_terms = 0;
    for (int i = 0; i < party->n_peers; i++) {
        struct cvy_peer *peer = &party->peers[i];
        bool is_me = i == party->me;
        int32_t end = p;
        while (end < what->n_partials && what->partials[end].device < peer->first + peer->n)
            end++;
        struct cvy_tree_stack stack;
        peer->n_nodes =
            own_nodes(what, p, end, &stack, is_me ? now->own_adds : NULL, is_me ? now->begin : NULL);
        most = peer->n_nodes > most ? peer->n_nodes : most;
        int32_t n = is_me ? end - p : peer->n_nodes;
        for (int32_t k = 0; k < n; k++) {
            now->terms[now->n_terms] = (struct cvy_term){.peer = i, .index = k};
            terms[now->n_terms++] =
                is_me ? what->partials[p + k]
                      : (struct cvy_partial){.first = stack.node[k].first, .level = stack.node[k].level};
        }
        p = end;
    }
    now->n_nodes = party->peers[party->me].n_nodes;
    now->begin[now->n_nodes] = now->n_own;
    now->piece = party->piece_bytes / sizeof(float) / (size_t)most & ~(size_t)(CVY_SLICE_FLOATS - 1);
    return cvy_tree_plan(what->n_shards, terms, now->n_terms, now->term_adds);
}

cvy_status cvy_party_reduce_begin(struct cvy_party *party, const struct cvy_round *op) {
    const struct cvy_reduction *what = op->posts[0].reduction;
    uint8_t n_adds[CVY_MAX_PARTIALS];
    CVY_TRY(cvy_tree_plan(what->n_shards, what->partials, what->n_partials,
                          n_adds)); /* before anyone trusts it */
    CVY_TRY(collect_own(party, op));
    CVY_TRY(plan_terms(party, what));
    party->reducing->n_summed = 0;
    for (int i = 0; i < party->n_peers; i++) {
        struct cvy_peer *peer = &party->peers[i];
        peer->n_out = peer->n_back = 0;
        CVY_TRY(cvy_party_open_lane(party, peer, true));
        CVY_TRY(cvy_party_open_lane(party, peer, false));
    }
    return CVY_OK;
}

/* ---- pieces --------------------------------------------------------------------------------------------------- */

struct piece {
    size_t at, n; /* floats */
};

static size_t n_pieces(const struct cvy_party *party, const struct cvy_reduction *what, int owner) {
    size_t n =
        cvy_slice_begin(what->n, owner + 1, party->n_peers) - cvy_slice_begin(what->n, owner, party->n_peers);
    return (n + party->reducing->piece - 1) / party->reducing->piece;
}

static struct piece piece_of(const struct cvy_party *party, const struct cvy_reduction *what, int owner,
                             size_t k) {
    size_t at = cvy_slice_begin(what->n, owner, party->n_peers) + k * party->reducing->piece;
    size_t end = cvy_slice_begin(what->n, owner + 1, party->n_peers);
    return (struct piece){.at = at,
                          .n = end - at < party->reducing->piece ? end - at : party->reducing->piece};
}

static bool is_wanted_by(const struct cvy_party *party, const struct cvy_peer *peer) {
    return peer->heard[atomic_load(&party->done.value) % CVY_HEARD].is_wanted;
}

/* Out: what the members here hold of a piece of another's slice, one node behind the other. */
static void step_out(struct cvy_party *party, const struct cvy_reduction *what, int owner, uint64_t number,
                     bool *moved) {
    struct cvy_reducing *now = party->reducing;
    struct cvy_peer *peer = &party->peers[owner];
    float *room = cvy_lane_room(peer->asking);
    if (!room)
        return;
    struct piece piece = piece_of(party, what, owner, peer->n_out);
    for (int32_t k = 0; k < now->n_nodes; k++) {
        int32_t begin = now->begin[k];
        for (int32_t i = begin; i < now->begin[k + 1]; i++)
            now->term_at[i] = now->own[i] + piece.at;
        float *node = room + (size_t)k * piece.n;
        struct cvy_blocksum sum = {.n_partials = now->begin[k + 1] - begin,
                                   .partials = now->term_at + begin,
                                   .n_adds = now->own_adds + begin,
                                   .n_results = 1,
                                   .results = &node};
        cvy_blocksum_run(&sum, 0, piece.n);
    }
    cvy_lane_ask(peer->asking, (size_t)now->n_nodes * piece.n * sizeof(float), number);
    peer->n_out++;
    *moved = true;
}

/* Back: a piece of another's slice, summed. */
static cvy_status step_back(struct cvy_party *party, const struct cvy_reduction *what, int owner,
                            uint64_t number, bool *moved) {
    const struct cvy_reducing *now = party->reducing;
    struct cvy_peer *peer = &party->peers[owner];
    struct piece piece = piece_of(party, what, owner, peer->n_back);
    size_t n_bytes = now->n_results > 0 ? piece.n * sizeof(float) : 0;
    cvy_status status = CVY_OK;
    const void *sums = cvy_lane_answered(peer->asking, n_bytes, number, &status);
    if (!sums)
        return status;
    for (int32_t r = 0; r < now->n_results; r++)
        memcpy(now->results[r] + piece.at, sums, n_bytes);
    cvy_lane_take(peer->asking);
    peer->n_back++;
    *moved = true;
    return CVY_OK;
}

/* Finds what all others hold of the next piece of the own slice; *is_there: have all asked? */
static cvy_status find_terms(struct cvy_party *party, struct piece piece, uint64_t number, bool *is_there) {
    struct cvy_reducing *now = party->reducing;
    *is_there = false;
    for (int i = 0; i < party->n_peers; i++) {
        struct cvy_peer *peer = &party->peers[i];
        cvy_status status = CVY_OK;
        if (i == party->me)
            continue;
        peer->question = cvy_lane_question(peer->answering, (size_t)peer->n_nodes * piece.n * sizeof(float),
                                           number, &status);
        if (!peer->question) {
            atomic_store(&party->awaited, i);
            return status;
        }
    }
    for (int32_t t = 0; t < now->n_terms; t++) {
        const struct cvy_term *term = &now->terms[t];
        now->term_at[t] = term->peer == party->me
                              ? now->own[term->index] + piece.at
                              : party->peers[term->peer].question + (size_t)term->index * piece.n;
    }
    *is_there = true;
    return CVY_OK;
}

static cvy_status step_sum(struct cvy_party *party, const struct cvy_reduction *what, uint64_t number,
                           bool *moved) {
    struct cvy_reducing *now = party->reducing;
    struct piece piece = piece_of(party, what, party->me, now->n_summed);
    bool is_there;
    CVY_TRY(find_terms(party, piece, number, &is_there));
    if (!is_there)
        return CVY_OK;
    int32_t n_results = 0;
    for (int32_t r = 0; r < now->n_results; r++)
        now->result_at[n_results++] = now->results[r] + piece.at;
    for (int i = 0; i < party->n_peers; i++) {
        if (i != party->me && is_wanted_by(party, &party->peers[i]))
            now->result_at[n_results++] = party->peers[i].question;
    }
    struct cvy_blocksum sum = {.n_partials = now->n_terms,
                               .partials = now->term_at,
                               .n_adds = now->term_adds,
                               .n_results = n_results,
                               .results = now->result_at};
    cvy_blocksum_run(&sum, 0, piece.n);
    for (int i = 0; i < party->n_peers; i++) {
        struct cvy_peer *peer = &party->peers[i];
        if (i != party->me)
            cvy_lane_answer(peer->answering, is_wanted_by(party, peer) ? piece.n * sizeof(float) : 0);
    }
    now->n_summed++;
    *moved = true;
    return CVY_OK;
}

cvy_status cvy_party_reduce_step(struct cvy_party *party, const struct cvy_round *op, bool *moved,
                                 bool *is_done) {
    const struct cvy_reduction *what = op->posts[0].reduction;
    uint64_t number = atomic_load(&party->done.value);
    bool is_complete = true;
    for (int k = 1; k < party->n_peers; k++) { /* beginning behind oneself, so that not all ask one */
        int owner = (party->me + k) % party->n_peers;
        struct cvy_peer *peer = &party->peers[owner];
        size_t n = n_pieces(party, what, owner);
        if (peer->n_out < n)
            step_out(party, what, owner, number, moved);
        if (peer->n_back < n) {
            atomic_store(&party->awaited, owner);
            CVY_TRY(step_back(party, what, owner, number, moved));
        }
        is_complete &= peer->n_back == n;
    }
    size_t n = n_pieces(party, what, party->me);
    if (party->reducing->n_summed < n)
        CVY_TRY(step_sum(party, what, number, moved));
    *is_done = is_complete && party->reducing->n_summed == n;
    return CVY_OK;
}
