/* Notes: the small messages between processes with which their parts of a group agree. Those from one process to
   another arrive in order. All processes run the same build on the same kind of processor, so structs travel as they
   lie in memory. A private part of the transports between processes. */
#ifndef CVY_COMM_NOTE_H
#define CVY_COMM_NOTE_H

#include "comm/shared.h"
#include "rt/comm.h"

enum cvy_note_kind {
    CVY_NOTE_OP,     /* all members of the sender have come to operation `sequence` of the group */
    CVY_NOTE_LATE,   /* some have, and have been waiting for long; these have not */
    CVY_NOTE_FORM,   /* the sender opened its end of a link */
    CVY_NOTE_LANE,   /* the sender's end of a lane */
    CVY_NOTE_CREDIT, /* the sender has taken so many messages from a link */
    CVY_NOTE_GOODBYE /* the sender is done with everything */
};

enum { CVY_OP_NAME = 96, CVY_LATE = 32 };

struct cvy_op_form { /* an operation of all members, as each must describe it */
    bool is_reduction;
    bool is_wanted; /* some member of the sender wants the result: the one thing that may differ */
    int32_t root, n_shards, n_partials;
    uint64_t n; /* floats of a reduction, bytes of a broadcast */
    uint64_t tree_hash, name_hash;
    char name[CVY_OP_NAME];
};

struct cvy_late {
    int32_t n, member[CVY_LATE]; /* the first of them */
};

struct cvy_end_form { /* one end of a link */
    int32_t link, from, to, capacity;
    int32_t tag; /* of its messages: said by the receiving end; -1 */
    uint64_t n_bytes;
};

struct cvy_lane_form {
    bool is_offer;                 /* by the end that answers; else the asker's word about it */
    int32_t tag;                   /* of the messages to the sender */
    struct cvy_shared_name shared; /* offered, or taken; pid 0: none */
};

struct cvy_credit {
    int32_t link;
    uint64_t n_received;
};

struct cvy_note {
    int32_t kind, from; /* rank of the process */
    uint32_t group;
    uint64_t sequence;
    union {
        struct cvy_op_form op;
        struct cvy_late late;
        struct cvy_end_form end;
        struct cvy_lane_form lane;
        struct cvy_credit credit;
    };
};

void cvy_op_form_reduction(const struct cvy_reduction *what, struct cvy_op_form *out);
void cvy_op_form_broadcast(const char *name, int root, size_t n_bytes, struct cvy_op_form *out);
/* What members a and b brought must be the same; else CVY_ERR_LOST, naming both. */
cvy_status cvy_op_forms_agree(int a, const struct cvy_op_form *of_a, int b, const struct cvy_op_form *of_b);

#endif
