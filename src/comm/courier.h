/* The thread of a process that moves everything between it and the others, and which alone calls the network. It goes
   round: notes that came, the parties (this process's parts in groups), their ferries. It never waits inside the
   network. When nothing moves it looks ever less often: the cores belong to the devices.
   A private part of the transports between processes. */
#ifndef CVY_COMM_COURIER_H
#define CVY_COMM_COURIER_H

#include "comm/bell.h"
#include "comm/note.h"

#include <convoy/plugin.h>

struct cvy_party;
struct cvy_ferry;
struct cvy_lane;

struct cvy_sent_note { /* on its way, or free to be used again */
    struct cvy_note note;
    struct cvy_network_request request;
    struct cvy_sent_note *next;
};

struct cvy_kept_note { /* for a group or a link that is not open here yet */
    struct cvy_note note;
    struct cvy_kept_note *next;
};

struct cvy_courier {
    const struct cvy_network *network;
    void *self; /* the network's */
    int rank, size, max_tag;
    bool *is_near; /* [size] the process is on this machine, and may share memory with us */
    struct cvy_bell bell;
    /* The network failed, or is of no use any more: ends every wait of this process. */
    void (*lost)(void *context, const char *reason);
    void *context;

    pthread_mutex_t lock;     /* of `opened`, and of dismissing a party */
    struct cvy_party *opened; /* parties that the thread has not seen yet, the newest first */
    _Atomic bool is_leaving;  /* say goodbye */
    _Atomic bool is_ending;   /* return from cvy_courier_run */
    _Atomic bool *has_left;   /* [size] said goodbye; its own: when all have */
    struct cvy_counter left;  /* 1: all have said goodbye */

    /* the thread's own */
    struct cvy_party *parties;
    struct cvy_ferry *dying; /* until their messages are done */
    struct cvy_lane *dying_lanes;
    struct cvy_sent_note *under_way, *spare;
    struct cvy_kept_note *kept;
    struct cvy_note incoming;
    struct cvy_network_request incoming_request;
    uint32_t newest_group; /* of the parties seen so far */
    int32_t n_tags;
    bool has_failed, has_said_goodbye;
};

/* The network is open. Main thread, before the thread runs. */
cvy_status cvy_courier_init(struct cvy_courier *courier);
void cvy_courier_free(struct cvy_courier *courier); /* after it ended */
/* Works until is_ending. The courier. */
void cvy_courier_run(struct cvy_courier *courier);
/* After it: takes back what the network still holds, before it is closed. The courier. */
bool cvy_courier_end(struct cvy_courier *courier);
void cvy_courier_ring(struct cvy_courier *courier);
/* Hands it a new party. Any thread. */
void cvy_courier_add(struct cvy_courier *courier, struct cvy_party *party);

/* ---- for the parties and ferries, in the courier. False: the network failed, and `lost` was called. */
bool cvy_courier_fail(struct cvy_courier *courier, const char *reason);
bool cvy_courier_tell(struct cvy_courier *courier, int peer, const struct cvy_note *note); /* sets `from` */
int32_t cvy_courier_new_tag(struct cvy_courier *courier);                                  /* -1: failed */
bool cvy_courier_isend(struct cvy_courier *courier, int peer, int tag, const void *bytes, size_t n_bytes,
                       struct cvy_network_request *out);
bool cvy_courier_irecv(struct cvy_courier *courier, int peer, int tag, void *bytes, size_t n_bytes,
                       struct cvy_network_request *out);
bool cvy_courier_test(struct cvy_courier *courier, struct cvy_network_request *request, int *is_done);
bool cvy_courier_cancel(struct cvy_courier *courier, struct cvy_network_request *request);
/* Notes that came too early for this group are heard again. */
bool cvy_courier_rehear(struct cvy_courier *courier, struct cvy_party *party);
/* Takes over what its party does not need any more. */
bool cvy_courier_bury(struct cvy_courier *courier, struct cvy_ferry *ferry);
bool cvy_courier_bury_lane(struct cvy_courier *courier, struct cvy_lane *lane); /* accepts NULL */

#endif
