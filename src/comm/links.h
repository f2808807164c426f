/* Links: messages from one member to another. A link is a ring of message buffers: the sender copies in and the
   receiver copies out, so that both may use their own memory again at once. Within a process both ends have one ring;
   between two each end has its own, and a ferry (ferry.h) stands for the other end.
   A private part of the transports.

   Invariants:
   - One member sends and one receives. Counting up only: received <= sent <= received + capacity.
   - Message k lies in place k % capacity. The place belongs to the sender until it counts k as sent, then to
     the receiver until it counts k as received.
   - A link stays until its hub closes; opening it again is no more than asking for the same one. */
#ifndef CVY_COMM_LINKS_H
#define CVY_COMM_LINKS_H

#include "base/mem.h"
#include "comm/bell.h"
#include "rt/comm.h"

struct cvy_link_form { /* what both ends must agree on */
    int from, to;
    size_t n_bytes; /* of the largest message */
    int capacity;
    bool
        is_on_device; /* the ring holds the heads alone; the bytes pass through memory of a device (peers.c) */
};

struct
    cvy_message { /* stands at the head of its place in the ring; its bytes follow CVY_MESSAGE_HEAD behind */
    uint64_t n_bytes;
    int32_t tag;
};
enum { CVY_MESSAGE_HEAD = CVY_ALIGN };

struct cvy_link {
    struct cvy_link_form form;
    unsigned char *ring; /* `capacity` places */
    size_t place_bytes;
    struct cvy_counter sent, received;
    int n_counters;        /* made so far */
    struct cvy_bell *bell; /* the other end is in another process: to be rung; else NULL */
    struct cvy_peer_ring *on_device;
};

struct cvy_links { /* zero-initialised is empty; links are added under the hub's lock */
    struct cvy_link *_Atomic link[CVY_MAX_LINKS];
};

/* A link by itself. CVY_ERR_MEMORY. */
cvy_status cvy_link_make(const struct cvy_link_form *form, struct cvy_link **out);
void cvy_link_free(struct cvy_link *link);
static inline struct cvy_message *cvy_link_place(const struct cvy_link *link, uint64_t k) {
    return (struct cvy_message *)(link->ring + k % (uint64_t)link->form.capacity * link->place_bytes);
}
static inline void *cvy_message_bytes(struct cvy_message *message) {
    return (unsigned char *)message + CVY_MESSAGE_HEAD;
}

/* Lets whoever waits on a link look again whether to go on. */
void cvy_links_wake(struct cvy_links *links);
void cvy_links_free(struct cvy_links *links);

/* As rt/comm.h says; `number` is the link's. Whichever end opens first makes the link, without waiting for
   the other. Sending and receiving allocate nothing. */
cvy_status cvy_link_open(struct cvy_group *me, int number, int from, int to, size_t n_bytes, int capacity);
cvy_status cvy_link_send(struct cvy_group *me, int number, int32_t tag, const struct cvy_piece *pieces, int n,
                         const char *name);
cvy_status cvy_link_recv(struct cvy_group *me, int number, int32_t tag, const struct cvy_piece *pieces, int n,
                         const char *name);

/* The same in parts, for who moves the bytes otherwise. Opening: what both ends must agree on. */
cvy_status cvy_link_open_as(struct cvy_group *me, int number, const struct cvy_link_form *mine,
                            struct cvy_link **out);
/* The place of the next message is free: its head is written. Then the bytes are moved, then the end counts it. */
cvy_status cvy_link_begin_send(struct cvy_group *me, int number, int32_t tag, size_t n_bytes,
                               const char *name, struct cvy_link **out);
void cvy_link_end_send(struct cvy_link *link);
/* The next message has come, and is what was expected. */
cvy_status cvy_link_begin_recv(struct cvy_group *me, int number, int32_t tag, size_t n_bytes,
                               const char *name, struct cvy_link **out);
void cvy_link_end_recv(struct cvy_link *link);
size_t cvy_pieces_bytes(const struct cvy_piece *pieces, int n);

#endif
