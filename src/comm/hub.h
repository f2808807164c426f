/* Where the members of one process meet: gates that they pass together, links between two of them, and one
   reason when they fail. When some members are in other processes (party.h), the hub knows all of them, but only its
   own move, and its gates are not used.
   A private part of the transports.

   Invariants:
   - Gates only count up. A member enters round r + 1 of a meeting after it left round r, which needed all
     members; so a gate reaches r * n exactly when all have arrived r times.
   - Between the two gates of a meeting everything posted is stable and may be read by all.
   - The first failure is the reason for all: it is kept, and every wait of every member ends with it. Then
     some member may still be at work, so memory must stay until all members have returned. */
#ifndef CVY_COMM_HUB_H
#define CVY_COMM_HUB_H

#include "base/mem.h"
#include "base/thread.h"
#include "comm/blocksum.h"
#include "comm/links.h"
#include "rt/comm.h"

enum { CVY_MAX_PARTIALS = 1024 }; /* of one reduction, all members together */

struct cvy_gate {
    struct cvy_counter count;  /* arrivals of all members in all rounds */
    _Atomic uint64_t *arrived; /* [n] rounds of each member: who is missing */
};

struct cvy_meeting { /* all post what they bring, work on it, and leave when all are done */
    struct cvy_gate posted, done;
};

struct cvy_hub { /* what the members share */
    int n;
    double timeout_s; /* of each wait */
    struct cvy_group **members;
    struct cvy_meeting slots[CVY_MAX_REDUCTIONS], general; /* general: broadcast and barrier */
    int n_gates;                                           /* made so far */
    struct cvy_links links;
    _Atomic bool is_aborted;
    pthread_mutex_t lock; /* of writing `reason`, which is fixed once is_aborted, and of making links */
    char reason[512];
    struct cvy_party *party;         /* members in other processes: what connects us with them; else NULL */
    struct cvy_processes *processes; /* of a group with a world */
    struct cvy_open_group *entry;    /* there */
    struct cvy_pool pool;
};

struct cvy_group {
    struct cvy_hub *hub;
    int rank;
    struct cvy_device *device;    /* of a device transport, else NULL */
    struct cvy_peer_state *peers; /* there (peers.c) */
    struct cvy_net_state {        /* there (net.c) */
        void *_Atomic net;
        const struct cvy_transport *hosts;  /* that opened the group */
        struct cvy_net_link *_Atomic links; /* that this member is an end of */
        float *scratch;
        size_t scratch_bytes;
    } net;
    uint64_t rounds[CVY_MAX_REDUCTIONS], general_rounds; /* entered so far */
    /* posted: written before the gate `posted`, read by all until the gate `done` */
    const struct cvy_reduction *open[CVY_MAX_REDUCTIONS];
    uint64_t n_ops, op[CVY_MAX_REDUCTIONS]; /* of a party: operations so far, and the one of each slot */
    struct cvy_broadcast {
        const char *name;
        int root;
        void *bytes;
        size_t n_bytes;
    } broadcast;
    /* the reduction that this member is summing */
    const float *partials[CVY_MAX_PARTIALS];
    uint8_t n_adds[CVY_MAX_PARTIALS];
    float **results; /* [n] */
};

cvy_status cvy_hub_open(const struct cvy_group_spec *spec, struct cvy_group **members);
void cvy_hub_close(int n, struct cvy_group **members);

/* The beginning of every reduce_start (meet.c): `what` becomes the open reduction of its slot. */
cvy_status cvy_hub_post_reduction(struct cvy_group *me, int slot, const struct cvy_reduction *what);

/* Finds everybody's memory once all have posted their reduction of the slot: each member's partials stand in its own
   order. CVY_ERR_LOST when they are not the same reduction. The lists are this member's. */
cvy_status cvy_hub_collect(struct cvy_group *me, int slot, struct cvy_blocksum *out);
/* Did `root` post the broadcast that this member posted? If not, gives up for everybody. */
cvy_status cvy_hub_check_broadcast(struct cvy_group *me, int root);

/* Says that this member reached the gate; never waits. */
void cvy_gate_arrive(struct cvy_group *me, struct cvy_gate *gate);
/* Waits until all members arrived `round` times. CVY_ERR_LOST at the deadline, which then is the reason for
   all, or as soon as somebody gave up. */
cvy_status cvy_gate_wait(struct cvy_group *me, struct cvy_gate *gate, uint64_t round, const char *name);

/* The wait of every member on the host, for `timeout_s` of the hub, in which it also looks after its device: the others
   may wait for what has failed there, and only its owner can tell them. Another failure than CVY_ERR_LOST is the
   device's. */
cvy_status cvy_hub_wait(struct cvy_group *me, struct cvy_counter *counter, uint64_t target, const char *name);

/* Ends all waits; the first reason stays. Other processes are told. */
void cvy_hub_abort(struct cvy_hub *hub, const char *reason);
/* The same within this process alone; false when there was a reason before. */
bool cvy_hub_stop(struct cvy_hub *hub, const char *reason);
/* CVY_ERR_LOST when somebody gave up; waited_s: how long this member had waited for `name` by then. */
cvy_status cvy_hub_check(const struct cvy_group *me, const char *name, double waited_s);
/* Gives up for everybody, because of this thread's newest error. Returns CVY_ERR_LOST. */
cvy_status cvy_hub_give_up(struct cvy_group *me);

/* "member 0, 3", the first few of many: those that arrived less than `round` times. Appends nothing when none is
   missing. */
void cvy_hub_print_missing(const struct cvy_hub *hub, const _Atomic uint64_t *arrived, uint64_t round,
                           struct cvy_text *out);
/* Gives up for everybody, since the deadline of `name` has passed; frees `missing`, who is late. Returns
   CVY_ERR_LOST. */
cvy_status cvy_hub_lose(struct cvy_group *me, const char *name, uint64_t round, double waited_s,
                        struct cvy_text *missing);

#endif
