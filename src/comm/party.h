/* A party: the members of one process in a group that spans several, and what connects them with the others.
   Members post what they bring and wait; the courier does the rest (courier.h).
   A private part of the transports between processes.

   How an operation goes: a member posts it under its own next number, so that operation k is the k-th of every
   member. Once all members of the process have come to it, the others are told (CVY_NOTE_OP). Operations are worked
   off in their order: when all processes have come, their descriptions are compared, then data moves, then it counts as
   done and those that wait for it return.

   Invariants:
   - A member waits for an operation before it begins more than CVY_MAX_REDUCTIONS + 1 others, so post k % CVY_OPS is
     free again when operation k + CVY_OPS is posted.
   - The network never touches the memory of members: all data goes through lanes and the rings of links.
   - The courier touches it only between the last post and `done`; once the group is aborted it stops, and
     says so in `settled`. A member returns with an error only after that (or after a second, should the thread be
     stuck). */
#ifndef CVY_COMM_PARTY_H
#define CVY_COMM_PARTY_H

#include "comm/ferry.h"
#include "comm/hub.h"
#include "comm/lane.h"
#include "comm/note.h"
#include "rt/tree.h"

enum {
    CVY_OPS = 512,
    CVY_AHEAD = 32,            /* operations that others are told before the one at work */
    CVY_HEARD = 2 * CVY_AHEAD, /* so far ahead of ours may another be when it tells */
};

struct cvy_post {
    const struct cvy_reduction *reduction; /* NULL: a broadcast */
    struct cvy_broadcast broadcast;
};

struct cvy_round {
    _Atomic int n_arrived;
    struct cvy_post *posts; /* [n_local] */
};

/* Another process of the group, or this one itself. */
struct cvy_peer {
    int rank;
    int first, n;                        /* its members */
    struct cvy_op_form *heard;           /* [CVY_HEARD] operation k at k % CVY_HEARD */
    uint64_t n_heard;                    /* operations that it has told */
    struct cvy_lane *asking, *answering; /* for data to it and from it; NULL until there is some */
    /* the reduction at work: pieces, and how many partial sums it brings */
    size_t n_out, n_back;
    int32_t n_nodes;
    float *question; /* its piece of the own slice */
};

/* The reduction at work. */
struct cvy_reducing {
    size_t piece; /* floats */
    size_t n_summed;
    int32_t n_nodes; /* partial sums that this process is left with, and which posts make each */
    int32_t begin[CVY_TREE_DEPTH + 1];  /* indices into own */
    const float *own[CVY_MAX_PARTIALS]; /* all partial sums of the members here, in the tree's order */
    uint8_t own_adds[CVY_MAX_PARTIALS]; /* within their node */
    int32_t n_own;
    int32_t n_terms; /* what the slice of this process is the sum of: own partial sums and others' nodes */
    struct cvy_term {
        int32_t peer, index; /* own[index], or node `index` of the peer */
    } terms[CVY_MAX_PARTIALS];
    uint8_t term_adds[CVY_MAX_PARTIALS];
    const float *term_at[CVY_MAX_PARTIALS];
    int32_t n_results; /* of the members here */
    float **results;   /* [n] */
    float **result_at; /* [n + processes] */
};

struct cvy_party {
    struct cvy_courier *courier;
    struct cvy_hub *hub;
    uint32_t number; /* of the group, the same in all processes */
    int n_peers, me; /* processes, and which is this one */
    struct cvy_peer *peers;
    size_t piece_bytes; /* of data; the same in all processes */
    struct cvy_round rounds[CVY_OPS];
    struct cvy_counter done;    /* operations */
    _Atomic uint64_t *came;     /* [n] operations to which each member is known to have come */
    _Atomic int awaited;        /* the process whose data is awaited; -1: none's */
    struct cvy_counter settled; /* 1: let go of the members' memory after an abort; 2: of the party */
    void (*tell)(struct cvy_party *party, const char *reason); /* of an abort, to other processes */
    /* what a member here waits for, should this process be lost */
    void (*note)(struct cvy_party *party, uint64_t number, const char *name);
    void *context;        /* of both */
    pthread_mutex_t lock; /* of fresh */
    struct cvy_ferry *fresh;
    _Atomic bool is_closing;
    struct cvy_party *next;
    /* the courier's */
    struct cvy_ferry *ferries;
    uint64_t n_told;       /* operations that others were told of */
    bool is_agreed;        /* on the operation at work */
    int64_t first_came_ns; /* when it was seen that some have come to it; 0: not yet */
    bool is_late_told;
    size_t n_spread; /* pieces of the broadcast at work */
    struct cvy_reducing *reducing;
};

/* Makes the party of a hub that knows all members; ranks[m]: the process of member m, rising. Any thread. */
cvy_status cvy_party_open(struct cvy_hub *hub, struct cvy_courier *courier, uint32_t number,
                          const int32_t *ranks, struct cvy_party **out);
/* After all members returned. Waits until what they sent is on its way, at most the group's timeout. Leaves memory
   alone that a stuck thread may still use: then hub->party stays. */
void cvy_party_close(struct cvy_party *party);

/* ---- the members' */

/* Posts, without waiting; which operation it became. */
uint64_t cvy_party_post(struct cvy_group *me, const struct cvy_post *post);
cvy_status cvy_party_wait(struct cvy_group *me, uint64_t op, uint64_t round, const char *name);
/* A link that was just made; when its other end is in another process the party becomes its owner. */
cvy_status cvy_party_add_link(struct cvy_party *party, int number, struct cvy_link *link);
void cvy_party_wake(struct cvy_party *party);
/* What a member is about to wait for, for the `number`-th time. */
void cvy_party_note(struct cvy_party *party, uint64_t number, const char *name);
/* Other processes learn why their members' waits end. */
void cvy_party_tell(struct cvy_party *party, const char *reason);

/* ---- the courier's; false: the network failed */

/* False: too early, to be kept. */
bool cvy_party_hear(struct cvy_party *party, const struct cvy_note *note);
bool cvy_party_step(struct cvy_party *party, bool *moved);
void cvy_party_let_go(struct cvy_party *party);
/* Has everything left that its members sent, or does it not matter any more? */
bool cvy_party_is_done(struct cvy_party *party);
void cvy_party_dismiss(struct cvy_party *party);

/* ---- between the files of the party */

struct cvy_peer *cvy_party_peer(struct cvy_party *party, int rank); /* NULL: none of the group's */
int cvy_party_peer_of(const struct cvy_party *party, int member);   /* index of its process */
/* Opens a lane to (is_asker) or from a peer, once. */
cvy_status cvy_party_open_lane(struct cvy_party *party, struct cvy_peer *peer, bool is_asker);
/* Both begin and do what can be done at once; *is_done. Failing ends the group. */
cvy_status cvy_party_reduce_begin(struct cvy_party *party, const struct cvy_round *op);
cvy_status cvy_party_reduce_step(struct cvy_party *party, const struct cvy_round *op, bool *moved,
                                 bool *is_done);
cvy_status cvy_party_broadcast_step(struct cvy_party *party, const struct cvy_round *op, bool *moved,
                                    bool *is_done);

#endif
