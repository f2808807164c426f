/* Lanes in shared memory and over the network. */
#include "comm/lane.h"

#include "comm/courier.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct head { /* of a place */
    uint64_t n_bytes, op;
};

enum { HEAD = CVY_ALIGN };

static struct head *head_of(const struct cvy_lane *lane, uint64_t k) {
    return (struct head *)(lane->places + k % CVY_PLACES * lane->place_bytes);
}

static void *bytes_of(struct head *head) { return (unsigned char *)head + HEAD; }

/* ---- making and agreeing ------------------------------------------------------------------------------- */

static bool say(struct cvy_lane *lane, struct cvy_courier *courier, const struct cvy_shared_name *shared) {
    struct cvy_note note = {.kind = CVY_NOTE_LANE, .group = lane->group};
    note.lane = (struct cvy_lane_form){.is_offer = !lane->is_asker, .tag = lane->tag_in, .shared = *shared};
    return cvy_courier_tell(courier, lane->peer, &note);
}

struct cvy_lane *cvy_lane_make(struct cvy_courier *courier, uint32_t group, int peer, bool is_asker,
                               size_t n_bytes) {
    struct cvy_lane *lane = calloc(1, sizeof *lane);
    if (!lane) {
        cvy_courier_fail(courier, "out of memory");
        return NULL;
    }
    *lane = (struct cvy_lane){.group = group,
                              .peer = peer,
                              .is_asker = is_asker,
                              .place_bytes = cvy_align_up(HEAD + n_bytes, CVY_ALIGN)};
    lane->tag_in = cvy_courier_new_tag(courier);
    struct cvy_shared_name shared = {0};
    if (!is_asker && courier->is_near[peer]) /* if that fails the network must do */
        (void)cvy_shared_make(&lane->shared, CVY_PLACES * lane->place_bytes, &shared);
    if (lane->tag_in < 0 || (!is_asker && !say(lane, courier, &shared))) {
        cvy_lane_free(lane);
        return NULL;
    }
    return lane;
}

void cvy_lane_free(struct cvy_lane *lane) {
    if (!lane)
        return;
    if (lane->places != lane->shared.places)
        free(lane->places);
    cvy_shared_free(&lane->shared);
    free(lane);
}

/* It is clear now whether memory is shared. */
static bool settle(struct cvy_lane *lane, struct cvy_courier *courier) {
    lane->is_agreed = true;
    lane->places = lane->shared.places;
    if (lane->places)
        return true;
    size_t n_bytes = CVY_PLACES * lane->place_bytes;
    lane->places = aligned_alloc(CVY_ALIGN, n_bytes);
    if (!lane->places)
        return cvy_courier_fail(courier, "out of memory");
    memset(lane->places, 0, n_bytes); /* touches the pages */
    return true;
}

bool cvy_lane_hear(struct cvy_lane *lane, struct cvy_courier *courier, const struct cvy_lane_form *said) {
    struct cvy_shared_name answer = {0};
    lane->tag_out = said->tag;
    if (!lane->is_asker) {
        if (said->shared.pid == 0)
            cvy_shared_free(&lane->shared);
        return settle(lane, courier);
    }
    if (said->shared.pid != 0 &&
        cvy_shared_open(&lane->shared, CVY_PLACES * lane->place_bytes, &said->shared))
        answer = said->shared;
    return settle(lane, courier) && say(lane, courier, &answer);
}

/* ---- over the network ------------------------------------------------------------------------------------ */

static struct cvy_under_way *under_way(struct cvy_lane *lane, uint64_t k) {
    return &lane->under_way[k % CVY_PLACES];
}

static bool send(struct cvy_lane *lane, struct cvy_courier *courier, uint64_t k) {
    struct cvy_under_way *at = under_way(lane, k);
    struct head *head = head_of(lane, k);
    at->is_active = true;
    at->is_receive = false;
    return cvy_courier_isend(courier, lane->peer, lane->tag_out, head, HEAD + head->n_bytes, &at->request);
}

static bool receive(struct cvy_lane *lane, struct cvy_courier *courier, uint64_t k) {
    struct cvy_under_way *at = under_way(lane, k);
    at->is_active = at->is_receive = true;
    return cvy_courier_irecv(courier, lane->peer, lane->tag_in, head_of(lane, k), lane->place_bytes,
                             &at->request);
}

/* Counts up while the messages that it counts are done. */
static bool collect(struct cvy_lane *lane, struct cvy_courier *courier, uint64_t *count, uint64_t end,
                    bool *moved) {
    for (; *count < end; ++*count) {
        struct cvy_under_way *at = under_way(lane, *count);
        int is_done;
        if (!cvy_courier_test(courier, &at->request, &is_done))
            return false;
        if (!is_done)
            return true;
        at->is_active = false;
        *moved = true;
    }
    return true;
}

static bool step_asker(struct cvy_lane *lane, struct cvy_courier *courier, bool *moved) {
    for (; lane->sent < lane->asked; lane->sent++) {
        if (!send(lane, courier, lane->sent))
            return false;
        *moved = true;
    }
    uint64_t before = lane->completed;
    if (!collect(lane, courier, &lane->completed, lane->sent, moved))
        return false;
    for (uint64_t k = before; k < lane->completed; k++) {
        if (!receive(lane, courier, k)) /* the answer, where the question was */
            return false;
    }
    return collect(lane, courier, &lane->answered, lane->completed, moved);
}

static bool step_answerer(struct cvy_lane *lane, struct cvy_courier *courier, bool *moved) {
    for (; lane->posted < lane->completed + CVY_PLACES; lane->posted++) {
        if (!receive(lane, courier, lane->posted))
            return false;
    }
    if (!collect(lane, courier, &lane->asked, lane->posted, moved))
        return false;
    for (; lane->sent < lane->answered; lane->sent++) {
        if (!send(lane, courier, lane->sent))
            return false;
        *moved = true;
    }
    return collect(lane, courier, &lane->completed, lane->sent, moved);
}

static void step_shared(struct cvy_lane *lane, bool *moved) {
    struct cvy_shared_counts *counts = lane->shared.counts;
    uint64_t *theirs = lane->is_asker ? &lane->answered : &lane->asked;
    uint64_t now =
        atomic_load_explicit(lane->is_asker ? &counts->answered : &counts->asked, memory_order_acquire);
    *moved |= now != *theirs;
    *theirs = now;
}

bool cvy_lane_step(struct cvy_lane *lane, struct cvy_courier *courier, bool *moved) {
    if (!lane->is_agreed)
        return true;
    if (lane->shared.places) {
        step_shared(lane, moved);
        return true;
    }
    return lane->is_asker ? step_asker(lane, courier, moved) : step_answerer(lane, courier, moved);
}

/* ---- asking and answering ---------------------------------------------------------------------------------- */

void *cvy_lane_room(struct cvy_lane *lane) {
    if (!lane->is_agreed || lane->asked - lane->taken >= CVY_PLACES)
        return NULL;
    return bytes_of(head_of(lane, lane->asked));
}

void cvy_lane_ask(struct cvy_lane *lane, size_t n_bytes, uint64_t op) {
    *head_of(lane, lane->asked++) = (struct head){.n_bytes = n_bytes, .op = op};
    if (lane->shared.places)
        atomic_store_explicit(&lane->shared.counts->asked, lane->asked, memory_order_release);
}

/* Both ends do the same operations in the same order, which was compared: anything else is a fault of ours. */
static void *expect(struct cvy_lane *lane, uint64_t k, size_t n_bytes, uint64_t op, cvy_status *status) {
    struct head *head = head_of(lane, k);
    if (head->n_bytes == n_bytes && head->op == op)
        return bytes_of(head);
    *status = CVY_FAIL(CVY_ERR_LOST, "rank %d sent %llu bytes of operation %llu where %zu of %llu were due",
                       lane->peer, (unsigned long long)head->n_bytes, (unsigned long long)head->op, n_bytes,
                       (unsigned long long)op);
    return NULL;
}

const void *cvy_lane_answered(struct cvy_lane *lane, size_t n_bytes, uint64_t op, cvy_status *status) {
    return lane->taken < lane->answered ? expect(lane, lane->taken, n_bytes, op, status) : NULL;
}

void cvy_lane_take(struct cvy_lane *lane) { lane->taken++; }

void *cvy_lane_question(struct cvy_lane *lane, size_t n_bytes, uint64_t op, cvy_status *status) {
    bool is_there = lane->is_agreed && lane->answered < lane->asked;
    return is_there ? expect(lane, lane->answered, n_bytes, op, status) : NULL;
}

void cvy_lane_answer(struct cvy_lane *lane, size_t n_bytes) {
    head_of(lane, lane->answered++)->n_bytes = n_bytes;
    if (lane->shared.places)
        atomic_store_explicit(&lane->shared.counts->answered, lane->answered, memory_order_release);
}

/* ---- ending ------------------------------------------------------------------------------------------------- */

bool cvy_lane_is_done(const struct cvy_lane *lane) {
    return lane->shared.places || lane->completed == (lane->is_asker ? lane->asked : lane->answered);
}

bool cvy_lane_cancel(struct cvy_lane *lane, struct cvy_courier *courier) {
    for (int i = 0; i < CVY_PLACES; i++) {
        struct cvy_under_way *at = &lane->under_way[i];
        if (at->is_active && at->is_receive && !cvy_courier_cancel(courier, &at->request))
            return false;
    }
    return true;
}

bool cvy_lane_is_idle(struct cvy_lane *lane, struct cvy_courier *courier) {
    for (int i = 0; i < CVY_PLACES; i++) {
        struct cvy_under_way *at = &lane->under_way[i];
        int is_done = 1;
        if (at->is_active && !cvy_courier_test(courier, &at->request, &is_done))
            return false;
        at->is_active = !is_done;
        if (!is_done)
            return false;
    }
    return true;
}
