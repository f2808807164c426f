/* The ring of a link: made under the hub's lock, then used by its two ends without one. */
#include "comm/links.h"

#include "comm/hub.h"
#include "comm/party.h"
#include "comm/peers.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- making and finding -------------------------------------------------------------------------- */

void cvy_link_free(struct cvy_link *link) {
    if (!link)
        return;
    if (link->n_counters > 0)
        cvy_counter_free(&link->sent);
    if (link->n_counters > 1)
        cvy_counter_free(&link->received);
    cvy_peer_ring_free(link->on_device);
    free(link->ring);
    free(link);
}

static cvy_status link_fill(struct cvy_link *link) {
    size_t capacity = (size_t)link->form.capacity, n_bytes = link->form.n_bytes;
    size_t place = cvy_align_up(link->form.is_on_device ? 0 : n_bytes, CVY_ALIGN) + CVY_MESSAGE_HEAD;
    bool fits = n_bytes < PTRDIFF_MAX / 2 && place <= PTRDIFF_MAX / capacity;
    link->ring = fits ? aligned_alloc(CVY_ALIGN, capacity * place) : NULL;
    if (!link->ring)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for %zu messages of %zu bytes", capacity,
                        n_bytes);
    link->place_bytes = place;
    CVY_TRY(cvy_counter_init(&link->sent));
    link->n_counters++;
    CVY_TRY(cvy_counter_init(&link->received));
    link->n_counters++;
    return CVY_OK;
}

cvy_status cvy_link_make(const struct cvy_link_form *form, struct cvy_link **out) {
    struct cvy_link *link;
    CVY_TRY(CVY_ALLOC(link, 1));
    link->form = *form;
    cvy_status status = link_fill(link);
    if (status != CVY_OK) {
        cvy_link_free(link);
        return status;
    }
    *out = link;
    return CVY_OK;
}

/* The link with this number, made if it is not there. */
static cvy_status find_or_make(struct cvy_hub *hub, int number, const struct cvy_link_form *form,
                               struct cvy_link **out) {
    cvy_status status = CVY_OK;
    pthread_mutex_lock(&hub->lock);
    *out = atomic_load(&hub->links.link[number]);
    if (!*out) {
        status = cvy_link_make(form, out);
        if (status == CVY_OK && hub->party)
            status = cvy_party_add_link(hub->party, number, *out);
        atomic_store(&hub->links.link[number], status == CVY_OK ? *out : NULL);
    }
    pthread_mutex_unlock(&hub->lock);
    return status;
}

cvy_status cvy_link_open_as(struct cvy_group *me, int number, const struct cvy_link_form *mine,
                            struct cvy_link **out) {
    int n = me->hub->n, from = mine->from, to = mine->to;
    bool is_sound = from >= 0 && from < n && to >= 0 && to < n && from != to && mine->capacity > 0;
    if (number < 0 || number >= CVY_MAX_LINKS || !is_sound || (me->rank != from && me->rank != to))
        return CVY_FAIL(CVY_ERR_FAILED, "member %d of %d cannot open link %d from %d to %d for %d messages",
                        me->rank, n, number, from, to, mine->capacity);
    CVY_TRY(find_or_make(me->hub, number, mine, out));
    const struct cvy_link_form *form = &(*out)->form;
    if (form->from != from || form->to != to || form->n_bytes != mine->n_bytes ||
        form->capacity != mine->capacity || form->is_on_device != mine->is_on_device) {
        CVY_FAIL(CVY_ERR_LOST,
                 "member %d opens link %d as %d to %d, %d x %zu bytes, but it is open as %d to %d, %d x %zu "
                 "bytes: they must run the same program",
                 me->rank, number, from, to, mine->capacity, mine->n_bytes, form->from, form->to,
                 form->capacity, form->n_bytes);
        return cvy_hub_give_up(me);
    }
    return CVY_OK;
}

cvy_status cvy_link_open(struct cvy_group *me, int number, int from, int to, size_t n_bytes, int capacity) {
    const struct cvy_link_form form = {.from = from, .to = to, .n_bytes = n_bytes, .capacity = capacity};
    struct cvy_link *link;
    CVY_TRY(cvy_link_open_as(me, number, &form, &link));
    /* Only the sender writes to the ring: it touches the pages now, so that no step has to. */
    if (me->rank == from && atomic_load(&link->sent.value) == 0)
        memset(link->ring, 0, (size_t)capacity * link->place_bytes);
    return CVY_OK;
}

void cvy_links_wake(struct cvy_links *links) {
    for (int i = 0; i < CVY_MAX_LINKS; i++) {
        struct cvy_link *link = atomic_load(&links->link[i]);
        if (link) {
            cvy_counter_wake(&link->sent);
            cvy_counter_wake(&link->received);
        }
    }
}

void cvy_links_free(struct cvy_links *links) {
    for (int i = 0; i < CVY_MAX_LINKS; i++) {
        struct cvy_link *link = atomic_load(&links->link[i]);
        cvy_link_free(link);
    }
}

/* ---- messages ------------------------------------------------------------------------------------ */

size_t cvy_pieces_bytes(const struct cvy_piece *pieces, int n) {
    size_t total = 0;
    for (int i = 0; i < n; i++)
        total += pieces[i].n_bytes;
    return total;
}

/* The link that a member wants to `verb` on. Nothing moves any more once somebody gave up. */
static cvy_status link_find(const struct cvy_group *me, int number, const char *verb, const char *name,
                            struct cvy_link **out) {
    CVY_TRY(cvy_hub_check(me, name, 0));
    bool is_number = number >= 0 && number < CVY_MAX_LINKS;
    struct cvy_link *link = is_number ? atomic_load(&me->hub->links.link[number]) : NULL;
    if (!link)
        return CVY_FAIL(CVY_ERR_FAILED, "%s: member %d cannot %s on link %d, which is not open", name,
                        me->rank, verb, number);
    *out = link;
    return CVY_OK;
}

/* Waits until the other end has done its part of message `k`. */
static cvy_status wait_for(struct cvy_group *me, int other, const char *verb, struct cvy_counter *counter,
                           uint64_t k, struct cvy_bell *bell, const char *name) {
    struct cvy_hub *hub = me->hub;
    int64_t start = cvy_now_ns();
    if (bell) {
        cvy_party_note(hub->party, k, name);
        atomic_fetch_add(&bell->n_waiting, 1);
    }
    cvy_status status = cvy_hub_wait(me, counter, k + 1, name);
    if (bell)
        atomic_fetch_sub(&bell->n_waiting, 1);
    if (status != CVY_ERR_LOST)
        return status;
    double waited_s = (double)(cvy_now_ns() - start) * 1e-9;
    CVY_TRY(cvy_hub_check(me, name, waited_s));
    CVY_FAIL(CVY_ERR_LOST,
             "%s: member %d waited %.1f seconds for member %d to %s message %llu, lost or slower than "
             "--timeout allows",
             name, me->rank, waited_s, other, verb, (unsigned long long)k);
    return cvy_hub_give_up(me);
}

cvy_status cvy_link_begin_send(struct cvy_group *me, int number, int32_t tag, size_t n_bytes,
                               const char *name, struct cvy_link **out) {
    struct cvy_link *link;
    CVY_TRY(link_find(me, number, "send", name, &link));
    const struct cvy_link_form *form = &link->form;
    if (me->rank != form->from || n_bytes > form->n_bytes)
        return CVY_FAIL(CVY_ERR_FAILED,
                        "%s: member %d cannot send %zu bytes on link %d, which takes %zu from member %d",
                        name, me->rank, n_bytes, number, form->n_bytes, form->from);
    uint64_t k = atomic_load(&link->sent.value), capacity = (uint64_t)form->capacity;
    if (k >= capacity) /* the place is free once its message before this one was received */
        CVY_TRY(wait_for(me, form->to, "receive", &link->received, k - capacity, link->bell, name));
    struct cvy_message *message = cvy_link_place(link, k);
    message->tag = tag;
    message->n_bytes = n_bytes;
    *out = link;
    return CVY_OK;
}

static void count_up(struct cvy_link *link, struct cvy_counter *counter) {
    cvy_counter_add(counter, 1);
    if (link->bell)
        cvy_counter_add(&link->bell->rings, 1);
}

void cvy_link_end_send(struct cvy_link *link) { count_up(link, &link->sent); }

cvy_status cvy_link_send(struct cvy_group *me, int number, int32_t tag, const struct cvy_piece *pieces, int n,
                         const char *name) {
    struct cvy_link *link;
    CVY_TRY(cvy_link_begin_send(me, number, tag, cvy_pieces_bytes(pieces, n), name, &link));
    unsigned char *at = cvy_message_bytes(cvy_link_place(link, atomic_load(&link->sent.value)));
    for (int i = 0; i < n; i++) {
        if (pieces[i].n_bytes > 0)
            memcpy(at, pieces[i].at, pieces[i].n_bytes);
        at += pieces[i].n_bytes;
    }
    cvy_link_end_send(link);
    return CVY_OK;
}

cvy_status cvy_link_begin_recv(struct cvy_group *me, int number, int32_t tag, size_t n_bytes,
                               const char *name, struct cvy_link **out) {
    struct cvy_link *link;
    CVY_TRY(link_find(me, number, "receive", name, &link));
    const struct cvy_link_form *form = &link->form;
    if (me->rank != form->to)
        return CVY_FAIL(CVY_ERR_FAILED, "%s: member %d cannot receive on link %d, which goes to member %d",
                        name, me->rank, number, form->to);
    uint64_t k = atomic_load(&link->received.value);
    CVY_TRY(wait_for(me, form->from, "send", &link->sent, k, link->bell, name));
    const struct cvy_message *message = cvy_link_place(link, k);
    *out = link;
    if (message->tag == tag && message->n_bytes == n_bytes)
        return CVY_OK;
    CVY_FAIL(CVY_ERR_LOST,
             "%s: member %d expected tag %d with %zu bytes, and member %d sent tag %d with %zu bytes: they "
             "must run the same program",
             name, me->rank, tag, n_bytes, form->from, message->tag, (size_t)message->n_bytes);
    return cvy_hub_give_up(me);
}

void cvy_link_end_recv(struct cvy_link *link) { count_up(link, &link->received); }

cvy_status cvy_link_recv(struct cvy_group *me, int number, int32_t tag, const struct cvy_piece *pieces, int n,
                         const char *name) {
    struct cvy_link *link;
    CVY_TRY(cvy_link_begin_recv(me, number, tag, cvy_pieces_bytes(pieces, n), name, &link));
    const unsigned char *at = cvy_message_bytes(cvy_link_place(link, atomic_load(&link->received.value)));
    for (int i = 0; i < n; i++) {
        if (pieces[i].n_bytes > 0)
            memcpy(pieces[i].at, at, pieces[i].n_bytes);
        at += pieces[i].n_bytes;
    }
    cvy_link_end_recv(link);
    return CVY_OK;
}
