/* The transport between devices. One `static const struct cvy_transport` per transport, listed in
   src/comm/transports.def. Groups are made once; every operation has a name and a deadline.
   Each function says Collective (all members call it, in the same order) or Local. */
#ifndef CVY_RT_COMM_H
#define CVY_RT_COMM_H

#include "base/status.h"
#include "rt/program.h"

struct cvy_group; /* a member's handle on its group */

/* One deterministic all-reduce: the partial sums of all members, added in the tree over shards
   (level l joins i and i + 2^l for i a multiple of 2^(l+1)). Every member describes the same one. */
struct cvy_reduction {
    const char *name; /* "bucket 2", for messages */
    size_t n;         /* floats */
    int32_t n_shards; /* S */
    int32_t n_partials;
    const struct cvy_partial *partials; /* of all members, sorted by `first` */
    float *const *mine;                 /* this member's, in the order in which they stand in `partials` */
    float *result;                      /* this member's copy of the sum; may be one of `mine` */
};

struct cvy_transport {
    const char *name;
    /* Makes n member handles of one group within this process. Local. */
    cvy_status (*open)(int n, double timeout_s, struct cvy_group **members);
    void (*close)(int n, struct cvy_group **members);
    /* Starts a reduction; the description must live until the wait. At most one open per `slot`
       (0 .. CVY_MAX_REDUCTIONS-1). Collective. */
    cvy_status (*reduce_start)(struct cvy_group *me, int slot, const struct cvy_reduction *what);
    /* Completes it. CVY_ERR_LOST at the deadline: which member, which step, which name. Collective. */
    cvy_status (*reduce_wait)(struct cvy_group *me, int slot);
    /* bytes from member `root` to all. Collective. */
    cvy_status (*broadcast)(struct cvy_group *me, int root, void *bytes, size_t n_bytes, const char *name);
    /* All wait for all. Collective. */
    cvy_status (*barrier)(struct cvy_group *me, const char *name);
    /* This member gives up: every wait of the others ends with CVY_ERR_LOST and this reason. Local. */
    void (*abort)(struct cvy_group *me, const char *reason);
    /* After all members returned from an error: usable again? Local. */
    const char *(*abort_reason)(const struct cvy_group *me); /* NULL: nobody gave up */
};

enum { CVY_MAX_REDUCTIONS = 256 };

const struct cvy_transport *cvy_transport_find(const char *name);

#endif
