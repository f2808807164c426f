/* The party's share of the courier's round: takes operations in their order through telling, comparing and
   moving. */
#include "comm/courier.h"
#include "comm/party.h"

#include <stdatomic.h>
#include <string.h>

cvy_status cvy_party_open_lane(struct cvy_party *party, struct cvy_peer *peer, bool is_asker) {
    struct cvy_lane **lane = is_asker ? &peer->asking : &peer->answering;
    if (*lane || peer == &party->peers[party->me])
        return CVY_OK;
    *lane = cvy_lane_make(party->courier, party->number, peer->rank, is_asker, party->piece_bytes);
    if (!*lane || !cvy_courier_rehear(party->courier, party))
        return CVY_ERR_LOST; /* the courier has said why */
    return CVY_OK;
}

/* ---- notes ------------------------------------------------------------------------------------------------ */

static void give_up(struct cvy_party *party) { cvy_hub_abort(party->hub, cvy_error()); }

static void hear_op(struct cvy_party *party, struct cvy_peer *peer, const struct cvy_note *note) {
    peer->heard[note->sequence % CVY_HEARD] = note->op;
    peer->n_heard = note->sequence + 1;
    for (int m = peer->first; m < peer->first + peer->n; m++)
        atomic_store(&party->came[m], note->sequence + 1);
}

static void hear_late(struct cvy_party *party, const struct cvy_peer *peer, const struct cvy_note *note) {
    for (int m = peer->first; m < peer->first + peer->n; m++) {
        bool is_late = false;
        for (int i = 0; i < note->late.n && i < CVY_LATE; i++)
            is_late |= note->late.member[i] == m;
        if (!is_late)
            atomic_store(&party->came[m], note->sequence + 1);
    }
}

bool cvy_party_hear(struct cvy_party *party, const struct cvy_note *note) {
    struct cvy_peer *peer = cvy_party_peer(party, note->from);
    if (!peer)
        return true;
    if (note->kind == CVY_NOTE_OP) {
        hear_op(party, peer, note);
        return true;
    }
    if (note->kind == CVY_NOTE_LATE) {
        hear_late(party, peer, note);
        return true;
    }
    if (note->kind == CVY_NOTE_LANE) {
        struct cvy_lane *lane = note->lane.is_offer ? peer->asking : peer->answering;
        return lane && cvy_lane_hear(lane, party->courier, &note->lane);
    }
    int32_t number = note->kind == CVY_NOTE_FORM ? note->end.link : note->credit.link;
    for (struct cvy_ferry *ferry = party->ferries; ferry; ferry = ferry->next) {
        if (ferry->peer != peer->rank || ferry->number != number)
            continue;
        if (cvy_ferry_hear(ferry, note) != CVY_OK)
            give_up(party);
        return true;
    }
    return false;
}

/* ---- operations -------------------------------------------------------------------------------------------- */

static bool tell_all(struct cvy_party *party, const struct cvy_note *note) {
    for (int i = 0; i < party->n_peers; i++) {
        if (i != party->me && !cvy_courier_tell(party->courier, party->peers[i].rank, note))
            return false;
    }
    return true;
}

static void describe(const struct cvy_post *post, struct cvy_op_form *out) {
    const struct cvy_broadcast *broadcast = &post->broadcast;
    if (post->reduction)
        cvy_op_form_reduction(post->reduction, out);
    else
        cvy_op_form_broadcast(broadcast->name, broadcast->root, broadcast->n_bytes, out);
}

/* What all members here brought; they must agree. */
static cvy_status sum_up(const struct cvy_party *party, const struct cvy_round *op, struct cvy_op_form *out) {
    const struct cvy_peer *mine = &party->peers[party->me];
    describe(&op->posts[0], out);
    for (int m = 0; m < mine->n; m++) {
        const struct cvy_post *post = &op->posts[m];
        struct cvy_op_form other;
        describe(post, &other);
        CVY_TRY(cvy_op_forms_agree(mine->first, out, mine->first + m, &other));
        out->is_wanted |= post->reduction && post->reduction->result;
    }
    return CVY_OK;
}

/* Tells the others of operations to which all here have come, some ahead of the one at work. */
static cvy_status tell_of_ops(struct cvy_party *party, bool *moved) {
    struct cvy_peer *mine = &party->peers[party->me];
    uint64_t at_work = atomic_load(&party->done.value);
    for (; party->n_told < at_work + CVY_AHEAD; party->n_told++) {
        const struct cvy_round *op = &party->rounds[party->n_told % CVY_OPS];
        if (atomic_load(&op->n_arrived) < mine->n)
            break;
        struct cvy_note note = {.kind = CVY_NOTE_OP, .group = party->number, .sequence = party->n_told};
        CVY_TRY(sum_up(party, op, &note.op));
        mine->heard[party->n_told % CVY_HEARD] = note.op;
        mine->n_heard = party->n_told + 1;
        if (!tell_all(party, &note))
            return CVY_ERR_LOST;
        *moved = true;
    }
    return CVY_OK;
}

/* When some here have waited for half the time that they have, the others learn for whom. */
static bool tell_who_is_late(struct cvy_party *party) {
    uint64_t at_work = atomic_load(&party->done.value);
    const struct cvy_peer *mine = &party->peers[party->me];
    int n_arrived = atomic_load(&party->rounds[at_work % CVY_OPS].n_arrived);
    if (n_arrived == 0 || n_arrived == mine->n || party->is_late_told)
        return true;
    int64_t now = cvy_now_ns();
    if (party->first_came_ns == 0)
        party->first_came_ns = now;
    if ((double)(now - party->first_came_ns) * 1e-9 < party->hub->timeout_s / 2)
        return true;
    struct cvy_note note = {.kind = CVY_NOTE_LATE, .group = party->number, .sequence = at_work};
    for (int m = mine->first; m < mine->first + mine->n; m++) {
        if (atomic_load(&party->came[m]) <= at_work && note.late.n < CVY_LATE)
            note.late.member[note.late.n++] = m;
    }
    party->is_late_told = true;
    return tell_all(party, &note);
}

/* Have all come to the operation at work, with the same in mind? */
static cvy_status agree(struct cvy_party *party, uint64_t at_work, bool *is_agreed) {
    const struct cvy_peer *mine = &party->peers[party->me];
    for (int i = 0; i < party->n_peers; i++) {
        if (party->peers[i].n_heard <= at_work)
            return CVY_OK;
    }
    for (int i = 0; i < party->n_peers; i++) {
        const struct cvy_peer *peer = &party->peers[i];
        CVY_TRY(cvy_op_forms_agree(mine->first, &mine->heard[at_work % CVY_HEARD], peer->first,
                                   &peer->heard[at_work % CVY_HEARD]));
    }
    *is_agreed = true;
    return CVY_OK;
}

static void finish(struct cvy_party *party, struct cvy_round *op) {
    party->is_agreed = false;
    party->first_came_ns = 0;
    party->is_late_told = false;
    party->n_spread = 0;
    atomic_store(&party->awaited, -1);
    atomic_store(&op->n_arrived, 0);
    cvy_counter_add(&party->done, 1);
}

static cvy_status work(struct cvy_party *party, bool *moved) {
    CVY_TRY(tell_of_ops(party, moved));
    uint64_t at_work = atomic_load(&party->done.value);
    struct cvy_round *op = &party->rounds[at_work % CVY_OPS];
    if (at_work >= party->n_told)
        return CVY_OK;
    const struct cvy_reduction *reduction = op->posts[0].reduction;
    bool is_done = false;
    if (!party->is_agreed) {
        CVY_TRY(agree(party, at_work, &party->is_agreed));
        if (!party->is_agreed)
            return CVY_OK;
        *moved = true;
        if (reduction)
            CVY_TRY(cvy_party_reduce_begin(party, op));
    }
    if (reduction)
        CVY_TRY(cvy_party_reduce_step(party, op, moved, &is_done));
    else
        CVY_TRY(cvy_party_broadcast_step(party, op, moved, &is_done));
    if (is_done)
        finish(party, op);
    return CVY_OK;
}

/* ---- the round ----------------------------------------------------------------------------------------------- */

static bool adopt(struct cvy_party *party) {
    pthread_mutex_lock(&party->lock);
    struct cvy_ferry *fresh = party->fresh;
    party->fresh = NULL;
    pthread_mutex_unlock(&party->lock);
    if (!fresh)
        return true;
    while (fresh) {
        struct cvy_ferry *ferry = fresh;
        fresh = ferry->next;
        ferry->next = party->ferries;
        party->ferries = ferry;
        if (!cvy_ferry_introduce(ferry, party->courier))
            return false;
    }
    return cvy_courier_rehear(party->courier, party);
}

static bool step_lanes(struct cvy_party *party, bool *moved) {
    for (int i = 0; i < party->n_peers; i++) {
        struct cvy_peer *peer = &party->peers[i];
        if ((peer->asking && !cvy_lane_step(peer->asking, party->courier, moved)) ||
            (peer->answering && !cvy_lane_step(peer->answering, party->courier, moved)))
            return false;
    }
    return true;
}

void cvy_party_let_go(struct cvy_party *party) {
    if (atomic_load(&party->settled.value) == 0)
        cvy_counter_add(&party->settled, 1);
}

bool cvy_party_step(struct cvy_party *party, bool *moved) {
    if (atomic_load(&party->hub->is_aborted)) {
        cvy_party_let_go(party);
        return true;
    }
    if (!adopt(party))
        return false;
    if (work(party, moved) != CVY_OK) {
        if (party->courier->has_failed)
            return false;
        give_up(party);
        return true;
    }
    for (struct cvy_ferry *ferry = party->ferries; ferry; ferry = ferry->next) {
        if (!cvy_ferry_step(ferry, party->courier, moved))
            return false;
    }
    return step_lanes(party, moved) && tell_who_is_late(party);
}

bool cvy_party_is_done(struct cvy_party *party) {
    if (atomic_load(&party->hub->is_aborted))
        return true;
    for (const struct cvy_ferry *ferry = party->ferries; ferry; ferry = ferry->next) {
        if (ferry->is_out && ferry->completed < atomic_load(&ferry->link->sent.value))
            return false;
    }
    for (int i = 0; i < party->n_peers; i++) {
        const struct cvy_peer *peer = &party->peers[i];
        if ((peer->asking && !cvy_lane_is_done(peer->asking)) ||
            (peer->answering && !cvy_lane_is_done(peer->answering)))
            return false;
    }
    pthread_mutex_lock(&party->lock);
    bool is_done = !party->fresh;
    pthread_mutex_unlock(&party->lock);
    return is_done;
}

void cvy_party_dismiss(struct cvy_party *party) {
    for (struct cvy_ferry *ferry = party->ferries, *next; ferry; ferry = next) {
        next = ferry->next;
        (void)cvy_courier_bury(party->courier, ferry);
    }
    for (struct cvy_ferry *ferry = party->fresh, *next; ferry; ferry = next) {
        next = ferry->next;
        (void)cvy_courier_bury(party->courier, ferry);
    }
    for (int i = 0; i < party->n_peers; i++) {
        (void)cvy_courier_bury_lane(party->courier, party->peers[i].asking);
        (void)cvy_courier_bury_lane(party->courier, party->peers[i].answering);
    }
    pthread_mutex_lock(&party->courier->lock);
    cvy_counter_add(&party->settled, 2);
    pthread_mutex_unlock(&party->courier->lock);
}
