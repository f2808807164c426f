/* The transport between devices. One `static const struct cvy_transport` per transport, listed in
   src/comm/transports.def. Groups are made once; every operation has a name and a deadline.
   Each function says Collective (all members call it, in the same order) or Local. */
#ifndef CVY_RT_COMM_H
#define CVY_RT_COMM_H

#include "base/status.h"
#include "rt/program.h"

struct cvy_device;
struct cvy_group; /* a member's handle on its group */

/* The processes of a run, as one of them sees them. Made by `join`; transports append their own. */
struct cvy_world {
    const struct cvy_transport *transport; /* between processes */
    int rank, size;
    int core_rank, core_size; /* among the processes that may run on the same cores of the same machine */
    struct cvy_group *main_thread; /* this process in the group of main threads; NULL in a world of one */
    bool has_failed_alike;         /* all processes have the same error: nobody waits for anybody */
};

/* Who is in a group. */
struct cvy_group_spec {
    struct cvy_world *world; /* NULL: all members are in this process */
    int n;
    const int32_t *process; /* [n] the rank of each member's process, rising; NULL without world */
    double timeout_s;       /* of each wait */
};

/* One deterministic all-reduce: the partial sums of all members, added in the tree over shards
   (level l joins i and i + 2^l for i a multiple of 2^(l+1)). Every member describes the same one. */
struct cvy_reduction {
    const char *name; /* "bucket 2", for messages */
    size_t n;         /* floats */
    int32_t n_shards; /* S */
    int32_t n_partials;
    const struct cvy_partial *partials; /* of all members, sorted by `first` */
    float *const *mine;                 /* this member's, in the order in which they stand in `partials` */
    float *result; /* this member's copy of the sum; may be one of `mine`; NULL: it needs none */
};

struct cvy_piece { /* part of a message */
    void *at;
    size_t n_bytes;
};

struct cvy_transport {
    const char *name;
    /* Was this process started by a launcher that this transport serves? NULL: it serves threads alone. Local. */
    bool (*is_launched)(void);
    /* Meets the other processes that the launcher started; once in a process. Calls of the main thread.
       CVY_ERR_LOST at the deadline, CVY_ERR_UNSUPPORTED when the launcher's library is not there. `log`, copied,
       hears the moment somebody is lost or gives up the run, from a thread of the transport: a launcher may end this
       process before it can say more. Collective. */
    cvy_status (*join)(double timeout_s, const cvy_log_sink *log, struct cvy_world **out);
    /* Parts from them. `reason` NULL: all is done, and it waits for the others to say so too; else this process gives
       up, and every wait of every process ends with CVY_ERR_LOST and this reason. Collective; with a reason
       Local. */
    cvy_status (*leave)(struct cvy_world *world, const char *reason);
    /* Makes the handles of the members that are in this process, members[0 .. n-1]; NULL for the others. All processes
       open the same groups in the same order, also those without a member. Waits for nobody. Collective. */
    cvy_status (*open)(const struct cvy_group_spec *spec, struct cvy_group **members);
    /* Frees them, and NULL for nobody's. After all members of this process returned. Local. */
    void (*close)(int n, struct cvy_group **members);
    /* Starts a reduction; the description must live until the wait. At most one open per `slot`
       (0 .. CVY_MAX_REDUCTIONS-1). Collective. */
    cvy_status (*reduce_start)(struct cvy_group *me, int slot, const struct cvy_reduction *what);
    /* Completes it. CVY_ERR_LOST at the deadline: which member, which step, which name. Collective. */
    cvy_status (*reduce_wait)(struct cvy_group *me, int slot);
    /* bytes from member `root` to all. Collective. */
    cvy_status (*broadcast)(struct cvy_group *me, int root, void *bytes, size_t n_bytes, const char *name);
    /* Makes link `link` (0 .. CVY_MAX_LINKS-1), which carries messages of up to n_bytes from member `from` to
       member `to`, in order, up to `capacity` of them under way. Before its first use, by those two alone; once
       more with the same numbers changes nothing. CVY_ERR_LOST when the two give different numbers. Collective. */
    cvy_status (*link_open)(struct cvy_group *me, int link, int from, int to, size_t n_bytes, int capacity);
    /* Sends the pieces as one message, complete on return: the memory may be used again. `tag` must be what the
       receiver expects. Waits only when `capacity` messages are under way; CVY_ERR_LOST at the deadline, naming
       the receiver. By `from`. */
    cvy_status (*send)(struct cvy_group *me, int link, int32_t tag, const struct cvy_piece *pieces, int n,
                       const char *name);
    /* Receives the next message into the pieces, which may be cut otherwise than the sender's. CVY_ERR_LOST at the
       deadline, naming the sender, or when tag or total size differ from what was sent. By `to`. */
    cvy_status (*recv)(struct cvy_group *me, int link, int32_t tag, const struct cvy_piece *pieces, int n,
                       const char *name);
    /* All wait for all. Collective. */
    cvy_status (*barrier)(struct cvy_group *me, const char *name);
    /* This member gives up: every wait of the others ends with CVY_ERR_LOST and this reason. Local. */
    void (*abort)(struct cvy_group *me, const char *reason);
    /* After all members returned from an error: usable again? Local. */
    const char *(*abort_reason)(const struct cvy_group *me); /* NULL: nobody gave up */
};

/* From device to device: the same operations on memory of devices, enqueued in each member's present stream, within a
   group that a transport opened. Members meet on the host when they enqueue, with the group's deadline; nobody waits
   there for a device. Each function by the owner of the member's device. */
struct cvy_device_transport {
    const char *name;
    /* This member's device, before it takes part in anything else. Local. */
    void (*attach)(struct cvy_group *me, struct cvy_device *device);
    /* Meets the others; by the device's owner, once, with the transport that opened the group. NULL: nothing to do.
       Collective. */
    cvy_status (*open)(struct cvy_group *me, const struct cvy_transport *transport);
    /* Makes room for a reduction like this one (its memory does not count), so that `reduce` allocates nothing.
       Local. */
    cvy_status (*reserve)(struct cvy_group *me, const struct cvy_reduction *what);
    /* reduce_start and reduce_wait in one. Collective. */
    cvy_status (*reduce)(struct cvy_group *me, int slot, const struct cvy_reduction *what);
    cvy_status (*broadcast)(struct cvy_group *me, int root, void *bytes, size_t n_bytes, const char *name);
    /* All three NULL: messages pass through the host. */
    cvy_status (*link_open)(struct cvy_group *me, int link, int from, int to, size_t n_bytes, int capacity);
    cvy_status (*send)(struct cvy_group *me, int link, int32_t tag, const struct cvy_piece *pieces, int n,
                       const char *name);
    cvy_status (*recv)(struct cvy_group *me, int link, int32_t tag, const struct cvy_piece *pieces, int n,
                       const char *name);
};

/* Devices of one process that reach each other's memory; NULL: not all of these do. Local. */
const struct cvy_device_transport *cvy_peers_find(struct cvy_device *const *devices, int n);
/* Devices with a network of their own, in one process or many: `places` has CVY_NET_PLACE bytes of each of the n
   devices of the run. is_fast: it adds in the network's own order. NULL: they have none, or two of them are in one
   place. Local. */
const struct cvy_device_transport *cvy_net_find(const struct cvy_device *device, const char *places, int n,
                                                bool is_fast);

enum { CVY_MAX_REDUCTIONS = 256, CVY_MAX_LINKS = 4096 };

/* The transport whose launcher started this process; NULL: none did. */
const struct cvy_transport *cvy_transport_launched(void);
const struct cvy_transport *cvy_transport_find(const char *name);

#endif
