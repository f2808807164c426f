/* links: the stages' ways to each other. How large their messages are follows from the segments' ports; a link keeps a
   few of them under way, in memory beside the arena. */
#include "engine/plan.h"

#include <stdio.h>
#include <string.h>

/* Bytes of the largest message between this stage and another in one direction, "to" or "from". */
static size_t message_bytes(const struct cvy_worker *w, const char *direction, int32_t peer) {
    char port[24];
    size_t most = 0;
    snprintf(port, sizeof port, "%s:%d", direction, peer);
    for (size_t s = 0; s < w->program->segments.n; s++) {
        const struct cvy_segment *segment = &w->program->segments.data[s];
        size_t bytes = 0;
        for (size_t k = 0; k < segment->ports.n; k++) {
            if (strcmp(segment->ports.data[k].name, port) == 0)
                bytes += segment->operands.data[segment->ports.data[k].operand].place.n_bytes;
        }
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* One message more than there are stages may be under way: then nobody waits for a slower stage's attention. */
static int capacity(const struct cvy_program *p) { return p->n_stages + 1; }

static int32_t device_of(const struct cvy_worker *w, int32_t stage) {
    return w->rank - w->program->stage + stage;
}

size_t cvy_links_bytes(const struct cvy_worker *w) {
    const struct cvy_program *p = w->program;
    const struct cvy_device_transport *on_devices = w->plan->team.on_devices;
    size_t bytes = 0;
    for (int32_t peer = 0; peer < p->n_stages; peer++) {
        size_t to = message_bytes(w, "to", peer), from = message_bytes(w, "from", peer);
        /* within a process the receiver reads from the sender's ring; else it has one, too, or a place for a network */
        bool is_far = cvy_plan_process(w->plan, device_of(w, peer)) != cvy_plan_process(w->plan, w->rank);
        bool is_net = on_devices && on_devices->open;
        size_t n_places = is_net ? 1 : is_far ? (size_t)capacity(p) : 0;
        bytes += (size_t)capacity(p) * to + n_places * from;
    }
    return bytes;
}

static cvy_status open_link(struct cvy_worker *w, int number, int from, int to, size_t n_bytes) {
    const struct cvy_device_transport *on_devices = w->team->on_devices;
    cvy_status (*open)(struct cvy_group *, int, int, int, size_t, int) =
        on_devices && on_devices->link_open ? on_devices->link_open : w->team->transport->link_open;
    return open(w->group, number, from, to, n_bytes, capacity(w->program));
}

/* What a device transport needs in each of the worker's groups. */
static cvy_status open_devices(const struct cvy_worker *w) {
    const struct cvy_device_transport *on_devices = w->team->on_devices;
    if (!on_devices)
        return CVY_OK;
    if (on_devices->open)
        CVY_TRY(on_devices->open(w->group, w->team->transport));
    if (on_devices->open && w->replicas && w->replicas != w->group)
        CVY_TRY(on_devices->open(w->replicas, w->team->transport));
    for (size_t b = 0; w->replicas && b < w->program->buckets.n; b++)
        CVY_TRY(on_devices->reserve(w->replicas, &w->reductions[b]));
    return CVY_OK;
}

cvy_status cvy_links_open(struct cvy_worker *w) {
    const struct cvy_program *p = w->program;
    if (!w->is_linked)
        CVY_TRY(open_devices(w));
    for (int32_t peer = 0; peer < p->n_stages && !w->is_linked; peer++) {
        int32_t other = device_of(w, peer);
        size_t to = message_bytes(w, "to", peer), from = message_bytes(w, "from", peer);
        bool is_first = p->stage < peer;
        /* A device transport may meet the other end in here: all open their links in one order, by pairs of stages,
           forward before backward, so that nobody waits in a circle. */
        for (int k = 0; k < 2; k++) {
            if (is_first == (k == 0) && to)
                CVY_TRY(open_link(w, cvy_link_number(p, p->stage, peer), w->rank, other, to));
            if (is_first != (k == 0) && from)
                CVY_TRY(open_link(w, cvy_link_number(p, peer, p->stage), other, w->rank, from));
        }
    }
    w->is_linked = true;
    return CVY_OK;
}
