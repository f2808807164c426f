/* The round of the courier. */
#include "comm/courier.h"

#include "comm/ferry.h"
#include "comm/lane.h"
#include "comm/party.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

enum { TAG_NOTES = 0 };

/* ---- the network --------------------------------------------------------------------------------------- */

bool cvy_courier_fail(struct cvy_courier *courier, const char *reason) {
    char text[CVY_NETWORK_ERROR + 64];
    if (!courier->has_failed) {
        courier->has_failed = true;
        snprintf(text, sizeof text, "rank %d: the network failed: %s", courier->rank, reason);
        courier->lost(courier->context, text);
    }
    return false;
}

#define CHECKED(call)                                                 \
    do {                                                              \
        char error[CVY_NETWORK_ERROR] = "no reason given";            \
        return (call) == 0 ? true : cvy_courier_fail(courier, error); \
    } while (0)

bool cvy_courier_isend(struct cvy_courier *courier, int peer, int tag, const void *bytes, size_t n_bytes,
                       struct cvy_network_request *out) {
    CHECKED(courier->network->isend(courier->self, peer, tag, bytes, n_bytes, out, error));
}

bool cvy_courier_irecv(struct cvy_courier *courier, int peer, int tag, void *bytes, size_t n_bytes,
                       struct cvy_network_request *out) {
    CHECKED(courier->network->irecv(courier->self, peer, tag, bytes, n_bytes, out, error));
}

bool cvy_courier_test(struct cvy_courier *courier, struct cvy_network_request *request, int *is_done) {
    CHECKED(courier->network->test(courier->self, request, is_done, error));
}

bool cvy_courier_cancel(struct cvy_courier *courier, struct cvy_network_request *request) {
    CHECKED(courier->network->cancel(courier->self, request, error));
}

int32_t cvy_courier_new_tag(struct cvy_courier *courier) {
    if (courier->n_tags >= courier->max_tag) {
        cvy_courier_fail(courier, "all tags for messages are used up: start the program again");
        return -1;
    }
    return ++courier->n_tags; /* 0 is that of the notes */
}

/* ---- notes --------------------------------------------------------------------------------------------- */

bool cvy_courier_tell(struct cvy_courier *courier, int peer, const struct cvy_note *note) {
    struct cvy_sent_note *sent = courier->spare;
    if (sent)
        courier->spare = sent->next;
    else if (!(sent = malloc(sizeof *sent)))
        return cvy_courier_fail(courier, "out of memory");
    sent->note = *note;
    sent->note.from = courier->rank;
    sent->next = courier->under_way;
    courier->under_way = sent;
    return cvy_courier_isend(courier, peer, TAG_NOTES, &sent->note, sizeof sent->note, &sent->request);
}

static bool collect_sent_notes(struct cvy_courier *courier) {
    for (struct cvy_sent_note **at = &courier->under_way; *at;) {
        struct cvy_sent_note *sent = *at;
        int is_done;
        if (!cvy_courier_test(courier, &sent->request, &is_done))
            return false;
        if (!is_done) {
            at = &sent->next;
            continue;
        }
        *at = sent->next;
        sent->next = courier->spare;
        courier->spare = sent;
    }
    return true;
}

static bool keep(struct cvy_courier *courier, const struct cvy_note *note) {
    struct cvy_kept_note *kept = malloc(sizeof *kept), **end = &courier->kept;
    if (!kept)
        return cvy_courier_fail(courier, "out of memory");
    *kept = (struct cvy_kept_note){.note = *note};
    while (*end)
        end = &(*end)->next;
    *end = kept;
    return true;
}

static bool hear(struct cvy_courier *courier, const struct cvy_note *note) {
    if (note->kind == CVY_NOTE_GOODBYE) {
        if (note->from >= 0 && note->from < courier->size)
            atomic_store(&courier->has_left[note->from], true);
        return true;
    }
    for (struct cvy_party *party = courier->parties; party; party = party->next) {
        if (party->number == note->group)
            return cvy_party_hear(party, note) || keep(courier, note);
    }
    return note->group <= courier->newest_group ||
           keep(courier, note); /* else: the group is closed already */
}

bool cvy_courier_rehear(struct cvy_courier *courier, struct cvy_party *party) {
    struct cvy_kept_note **at = &courier->kept;
    while (*at) {
        struct cvy_kept_note *kept = *at;
        if (kept->note.group == party->number && cvy_party_hear(party, &kept->note)) {
            *at = kept->next;
            free(kept);
        } else {
            at = &kept->next;
        }
    }
    return !courier->has_failed;
}

static bool receive_notes(struct cvy_courier *courier, bool *moved) {
    for (;;) {
        int is_done;
        if (!cvy_courier_test(courier, &courier->incoming_request, &is_done))
            return false;
        if (!is_done)
            return true;
        *moved = true;
        struct cvy_note note = courier->incoming;
        if (!cvy_courier_irecv(courier, CVY_NETWORK_ANY, TAG_NOTES, &courier->incoming, sizeof note,
                               &courier->incoming_request) ||
            !hear(courier, &note))
            return false;
    }
}

/* Once this process is done: tells the others, and waits for theirs. */
static bool part(struct cvy_courier *courier) {
    int n_left = 0;
    for (int peer = 0; peer < courier->size; peer++) {
        n_left += peer == courier->rank || atomic_load(&courier->has_left[peer]);
        if (!courier->has_said_goodbye && peer != courier->rank &&
            !cvy_courier_tell(courier, peer, &(struct cvy_note){.kind = CVY_NOTE_GOODBYE}))
            return false;
    }
    courier->has_said_goodbye = true;
    if (n_left == courier->size && !courier->under_way &&
        !atomic_exchange(&courier->has_left[courier->rank], true))
        cvy_counter_add(&courier->left, 1);
    return true;
}

/* ---- parties and ferries -------------------------------------------------------------------------------- */

void cvy_courier_ring(struct cvy_courier *courier) { cvy_counter_add(&courier->bell.rings, 1); }

void cvy_courier_add(struct cvy_courier *courier, struct cvy_party *party) {
    pthread_mutex_lock(&courier->lock);
    party->next = courier->opened;
    courier->opened = party;
    pthread_mutex_unlock(&courier->lock);
    cvy_courier_ring(courier);
}

static bool greet(struct cvy_courier *courier) {
    pthread_mutex_lock(&courier->lock);
    struct cvy_party *opened = courier->opened, *in_order = NULL;
    courier->opened = NULL;
    pthread_mutex_unlock(&courier->lock);
    while (opened) {
        struct cvy_party *next = opened->next;
        opened->next = in_order;
        in_order = opened;
        opened = next;
    }
    while (in_order) {
        struct cvy_party *party = in_order;
        in_order = party->next;
        party->next = courier->parties;
        courier->parties = party;
        courier->newest_group = party->number;
        if (!cvy_courier_rehear(courier, party))
            return false;
    }
    return true;
}

bool cvy_courier_bury(struct cvy_courier *courier, struct cvy_ferry *ferry) {
    ferry->next = courier->dying;
    courier->dying = ferry;
    return cvy_ferry_cancel(ferry, courier);
}

bool cvy_courier_bury_lane(struct cvy_courier *courier, struct cvy_lane *lane) {
    if (!lane)
        return true;
    lane->next = courier->dying_lanes;
    courier->dying_lanes = lane;
    return cvy_lane_cancel(lane, courier);
}

static bool collect_dying_lanes(struct cvy_courier *courier) {
    for (struct cvy_lane **at = &courier->dying_lanes; *at;) {
        struct cvy_lane *lane = *at;
        if (cvy_lane_is_idle(lane, courier)) {
            *at = lane->next;
            cvy_lane_free(lane);
        } else {
            at = &lane->next;
        }
    }
    return !courier->has_failed;
}

static bool collect_dying(struct cvy_courier *courier) {
    for (struct cvy_ferry **at = &courier->dying; *at;) {
        struct cvy_ferry *ferry = *at;
        if (!cvy_ferry_is_idle(ferry, courier)) {
            if (courier->has_failed)
                return false;
            at = &ferry->next;
            continue;
        }
        *at = ferry->next;
        cvy_ferry_free(ferry);
    }
    return collect_dying_lanes(courier);
}

/* Parties whose group is closed go, once what their members sent is on its way. They count it last: then their memory
   is the closer's. */
static void dismiss(struct cvy_courier *courier) {
    for (struct cvy_party **at = &courier->parties; *at;) {
        struct cvy_party *party = *at;
        if (atomic_load(&party->is_closing) && (courier->has_failed || cvy_party_is_done(party))) {
            *at = party->next;
            cvy_party_dismiss(party);
        } else {
            at = &party->next;
        }
    }
}

static bool go_round(struct cvy_courier *courier, bool *moved) {
    if (!greet(courier) || !receive_notes(courier, moved))
        return false;
    for (struct cvy_party *party = courier->parties; party; party = party->next) {
        if (!cvy_party_step(party, moved))
            return false;
    }
    if (!collect_sent_notes(courier) || !collect_dying(courier))
        return false;
    return !atomic_load(&courier->is_leaving) || part(courier);
}

/* After a failure: only lets go of what others wait for. */
static void let_go(struct cvy_courier *courier) {
    (void)greet(courier);
    for (struct cvy_party *party = courier->parties; party; party = party->next)
        cvy_party_let_go(party);
}

/* ---- the thread ------------------------------------------------------------------------------------------ */

/* How long to look away when nothing has moved for `idle_ns`: an eighth of that, so that a wait is at most so much
   longer, and at most 1 ms; 1/4 ms when a member waits. Right after something moved: not at all. */
static int64_t nap_ns(const struct cvy_courier *courier, int64_t idle_ns) {
    enum { SPIN_NS = 20000, LEAST_NS = 10000, MOST_NS = 1000000, MOST_WAITING_NS = 250000 };
    if (idle_ns < SPIN_NS)
        return 0;
    int64_t most = atomic_load(&courier->bell.n_waiting) > 0 ? MOST_WAITING_NS : MOST_NS;
    int64_t nap = idle_ns / 8;
    return nap < LEAST_NS ? LEAST_NS : nap > most ? most : nap;
}

void cvy_courier_run(struct cvy_courier *courier) {
    prctl(PR_SET_TIMERSLACK, 1000UL); /* ns; by default naps would be 50 us longer */
    if (!cvy_courier_irecv(courier, CVY_NETWORK_ANY, TAG_NOTES, &courier->incoming, sizeof courier->incoming,
                           &courier->incoming_request))
        courier->has_failed = true;
    int64_t last_moved_ns = cvy_now_ns();
    while (!atomic_load(&courier->is_ending)) {
        uint64_t rings = atomic_load(&courier->bell.rings.value);
        bool moved = false;
        if (courier->has_failed || !go_round(courier, &moved))
            let_go(courier);
        dismiss(courier);
        int64_t now = cvy_now_ns();
        if (moved)
            last_moved_ns = now;
        int64_t nap = nap_ns(courier, now - last_moved_ns);
        if (nap > 0)
            cvy_counter_nap(&courier->bell.rings, rings + 1, nap);
    }
}

bool cvy_courier_end(struct cvy_courier *courier) {
    enum { MOST_ROUNDS = 1000 }; /* messages of groups that were given up may never end */
    if (!cvy_courier_cancel(courier, &courier->incoming_request))
        return false;
    int is_done = 0;
    for (int i = 0; i < MOST_ROUNDS && !is_done; i++) {
        if (!cvy_courier_test(courier, &courier->incoming_request, &is_done) || !collect_dying(courier))
            return false;
    }
    return true;
}

cvy_status cvy_courier_init(struct cvy_courier *courier) {
    CVY_TRY(CVY_ALLOC(courier->has_left, (size_t)courier->size));
    return CVY_ALLOC(courier->is_near, (size_t)courier->size);
}

void cvy_courier_free(struct cvy_courier *courier) {
    for (struct cvy_sent_note *sent = courier->under_way, *next; sent; sent = next) {
        next = sent->next;
        free(sent);
    }
    for (struct cvy_sent_note *sent = courier->spare, *next; sent; sent = next) {
        next = sent->next;
        free(sent);
    }
    for (struct cvy_kept_note *kept = courier->kept, *next; kept; kept = next) {
        next = kept->next;
        free(kept);
    }
    for (struct cvy_ferry *ferry = courier->dying, *next; ferry; ferry = next) {
        next = ferry->next;
        cvy_ferry_free(ferry);
    }
    for (struct cvy_lane *lane = courier->dying_lanes, *next; lane; lane = next) {
        next = lane->next;
        cvy_lane_free(lane);
    }
    free(courier->has_left);
    free(courier->is_near);
}
