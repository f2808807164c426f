/* Moving the messages of a link over the network. */
#include "comm/ferry.h"

#include "comm/courier.h"

#include <stdatomic.h>
#include <stdlib.h>

cvy_status cvy_ferry_make(struct cvy_link *link, uint32_t group, int32_t number, int peer, bool is_out,
                          struct cvy_ferry **out) {
    struct cvy_ferry *ferry;
    if (link->form.n_bytes > INT32_MAX - CVY_MESSAGE_HEAD)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED,
                        "link %d: messages of %zu bytes are too large between processes, which take 2 GB: "
                        "take more shards",
                        number, link->form.n_bytes);
    CVY_TRY(CVY_ALLOC(ferry, 1));
    *ferry = (struct cvy_ferry){
        .link = link, .group = group, .number = number, .peer = peer, .is_out = is_out, .tag = -1};
    cvy_status status = CVY_ALLOC(ferry->requests, (size_t)link->form.capacity);
    if (status != CVY_OK) {
        free(ferry);
        return status;
    }
    *out = ferry;
    return CVY_OK;
}

void cvy_ferry_free(struct cvy_ferry *ferry) {
    if (!ferry)
        return;
    cvy_link_free(ferry->link);
    free(ferry->requests);
    free(ferry);
}

/* ---- agreeing ------------------------------------------------------------------------------------------ */

bool cvy_ferry_introduce(struct cvy_ferry *ferry, struct cvy_courier *courier) {
    const struct cvy_link_form *form = &ferry->link->form;
    if (!ferry->is_out) {
        ferry->tag = cvy_courier_new_tag(courier);
        if (ferry->tag < 0)
            return false;
    }
    struct cvy_note note = {.kind = CVY_NOTE_FORM, .group = ferry->group};
    note.end = (struct cvy_end_form){.link = ferry->number,
                                     .from = form->from,
                                     .to = form->to,
                                     .capacity = form->capacity,
                                     .tag = ferry->tag,
                                     .n_bytes = form->n_bytes};
    return cvy_courier_tell(courier, ferry->peer, &note);
}

cvy_status cvy_ferry_hear(struct cvy_ferry *ferry, const struct cvy_note *note) {
    if (note->kind == CVY_NOTE_CREDIT) {
        ferry->credit = note->credit.n_received;
        return CVY_OK;
    }
    const struct cvy_link_form *form = &ferry->link->form;
    const struct cvy_end_form *end = &note->end;
    if (form->from != end->from || form->to != end->to || form->capacity != end->capacity ||
        form->n_bytes != end->n_bytes)
        return CVY_FAIL(
            CVY_ERR_LOST,
            "member %d opens link %d as %d to %d, %d x %zu bytes, and the other end as %d to %d, %d x "
            "%llu bytes: they must run the same program",
            ferry->is_out ? form->from : form->to, ferry->number, form->from, form->to, form->capacity,
            form->n_bytes, end->from, end->to, end->capacity, (unsigned long long)end->n_bytes);
    if (ferry->is_out)
        ferry->tag = end->tag;
    ferry->is_agreed = true;
    return CVY_OK;
}

/* ---- moving -------------------------------------------------------------------------------------------- */

static struct cvy_network_request *request_of(const struct cvy_ferry *ferry, uint64_t k) {
    return &ferry->requests[k % (uint64_t)ferry->link->form.capacity];
}

/* Messages that are done, in their order. */
static bool complete(struct cvy_ferry *ferry, struct cvy_courier *courier) {
    while (ferry->completed < ferry->posted) {
        int is_done;
        if (!cvy_courier_test(courier, request_of(ferry, ferry->completed), &is_done))
            return false;
        if (!is_done)
            break;
        ferry->completed++;
    }
    return true;
}

static bool step_out(struct cvy_ferry *ferry, struct cvy_courier *courier, bool *moved) {
    struct cvy_link *link = ferry->link;
    uint64_t sent = atomic_load(&link->sent.value), before = ferry->completed;
    if (!ferry->is_agreed)
        return true;
    for (; ferry->posted < sent; ferry->posted++) { /* the ring's size keeps the requests from running over */
        struct cvy_message *message = cvy_link_place(link, ferry->posted);
        if (!cvy_courier_isend(courier, ferry->peer, ferry->tag, message,
                               CVY_MESSAGE_HEAD + (size_t)message->n_bytes, request_of(ferry, ferry->posted)))
            return false;
        *moved = true;
    }
    if (!complete(ferry, courier))
        return false;
    uint64_t received = ferry->credit < ferry->completed ? ferry->credit : ferry->completed;
    uint64_t known = atomic_load(&link->received.value);
    if (received > known)
        cvy_counter_add(&link->received, received - known);
    *moved |= received > known || ferry->completed > before;
    return true;
}

static bool step_in(struct cvy_ferry *ferry, struct cvy_courier *courier, bool *moved) {
    struct cvy_link *link = ferry->link;
    uint64_t received = atomic_load(&link->received.value), capacity = (uint64_t)link->form.capacity;
    if (ferry->tag < 0)
        return true;
    for (; ferry->posted < received + capacity; ferry->posted++) {
        if (!cvy_courier_irecv(courier, ferry->peer, ferry->tag, cvy_link_place(link, ferry->posted),
                               link->place_bytes, request_of(ferry, ferry->posted)))
            return false;
    }
    uint64_t before = ferry->completed;
    if (!complete(ferry, courier))
        return false;
    if (ferry->completed > before)
        cvy_counter_add(&link->sent, ferry->completed - before);
    if (received > ferry->told) {
        struct cvy_note note = {.kind = CVY_NOTE_CREDIT, .group = ferry->group};
        note.credit = (struct cvy_credit){.link = ferry->number, .n_received = received};
        if (!cvy_courier_tell(courier, ferry->peer, &note))
            return false;
        ferry->told = received;
        *moved = true;
    }
    *moved |= ferry->completed > before;
    return true;
}

bool cvy_ferry_step(struct cvy_ferry *ferry, struct cvy_courier *courier, bool *moved) {
    return ferry->is_out ? step_out(ferry, courier, moved) : step_in(ferry, courier, moved);
}

/* ---- ending -------------------------------------------------------------------------------------------- */

bool cvy_ferry_cancel(struct cvy_ferry *ferry, struct cvy_courier *courier) {
    for (uint64_t k = ferry->completed; k < ferry->posted && !ferry->is_out; k++) {
        if (!cvy_courier_cancel(courier, request_of(ferry, k)))
            return false;
    }
    return true;
}

bool cvy_ferry_is_idle(struct cvy_ferry *ferry, struct cvy_courier *courier) {
    return complete(ferry, courier) && ferry->completed == ferry->posted;
}
