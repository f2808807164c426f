/* A ferry: carries the messages of one link to, or from, another process. There it has its counterpart, and
   each end has a ring of its own; the ferry stands for the other end: it counts as received what the far receiver took,
   and as sent what has arrived. A private part of the transports between processes.

   Invariants:
   - The receiving end chooses the tag of the messages, never the same twice in a process, and says it with
     the form of its link. Nothing is sent before, hence nothing to an end that has another form.
   - Going out: received <= completed <= posted <= sent. Coming in: told <= received <= sent <= posted <= received +
     capacity.
   - While a message is under way its place belongs to the network: a ferry that is not wanted any more is kept until
     its last message is done. */
#ifndef CVY_COMM_FERRY_H
#define CVY_COMM_FERRY_H

#include "comm/links.h"
#include "comm/note.h"

#include <convoy/plugin.h>

struct cvy_courier;

struct cvy_ferry {
    struct cvy_link *link;
    int peer; /* rank of the other process */
    uint32_t group;
    int32_t number; /* of the link within the group */
    bool is_out;
    /* the courier's */
    int32_t tag; /* -1: not known yet */
    bool is_agreed;
    uint64_t posted, completed;           /* messages handed to the network, and done there */
    uint64_t credit, told;                /* what the far receiver took; what it was told that we took */
    struct cvy_network_request *requests; /* [capacity] */
    struct cvy_ferry *next;
};

/* The ferry keeps `link` and frees it. Any thread. */
cvy_status cvy_ferry_make(struct cvy_link *link, uint32_t group, int32_t number, int peer, bool is_out,
                          struct cvy_ferry **out);
void cvy_ferry_free(struct cvy_ferry *ferry);

/* The rest is the courier's. A false return means that the network failed (cvy_courier_fail was called). */

/* Says the form of this end to the other. */
bool cvy_ferry_introduce(struct cvy_ferry *ferry, struct cvy_courier *courier);
/* What the other end says. CVY_ERR_LOST when its form differs. */
cvy_status cvy_ferry_hear(struct cvy_ferry *ferry, const struct cvy_note *note);
/* Moves on; *moved becomes true when something did. */
bool cvy_ferry_step(struct cvy_ferry *ferry, struct cvy_courier *courier, bool *moved);
/* Nobody wants its messages any more. */
bool cvy_ferry_cancel(struct cvy_ferry *ferry, struct cvy_courier *courier);
/* After the cancel: are all its messages done? */
bool cvy_ferry_is_idle(struct cvy_ferry *ferry, struct cvy_courier *courier);

#endif
