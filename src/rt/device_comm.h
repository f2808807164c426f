/* What a backend offers so that bytes go from device to device without the host: part of the backend interface
   (rt/backend.h), used by the device transports (rt/comm.h). */
#ifndef CVY_RT_DEVICE_COMM_H
#define CVY_RT_DEVICE_COMM_H

#include "base/status.h"

#include <stdbool.h>

struct cvy_device;

/* Devices that reach each other's memory: what a transport needs so that it goes from device to device. Everything goes
   into the present stream of `me` and is called by its owner's thread, but for `reaches` and `unmark`. */
struct cvy_peers {
    /* May kernels and copies of `me` read and write memory of `other`? Any thread, before both work. */
    bool (*reaches)(struct cvy_device *me, struct cvy_device *other);
    /* A mark of its own happens when what is in the stream so far is complete. *mark NULL: makes one; else it happens
       anew. */
    cvy_status (*mark)(struct cvy_device *me, void **mark);
    /* What follows in this stream comes after the newest happening of a mark, of whichever device. */
    cvy_status (*follow)(struct cvy_device *me, void *mark);
    cvy_status (*copy)(struct cvy_device *me, void *to, const void *from, size_t n_bytes);
    /* Memory of `me` that others reach too, and that lasts until it is given back. */
    cvy_status (*alloc)(struct cvy_device *me, size_t n_bytes, void **out);
    /* Both accept NULL. Any thread, after the devices are done. */
    void (*unmark)(void *mark);
    void (*release)(struct cvy_device *me, void *memory);
};

/* A network of the devices' own, as NCCL is, also between processes: members are numbered, and no two of them may be on
   the same piece of hardware. Everything goes into the present stream of the member's device and is called by its
   owner's thread, but for make_id and abort. */
enum { CVY_NET_ID = 128, CVY_NET_PLACE = 16 };

struct cvy_net {
    const char *name; /* "NCCL" */
    /* A name by which the members of a new network find each other. Local. */
    cvy_status (*make_id)(char id[CVY_NET_ID]);
    /* Which piece of hardware the device is on, of all in the world. Local. */
    cvy_status (*place)(struct cvy_device *me, char place[CVY_NET_PLACE]);
    /* Meets the others, for the device's timeout_s at most: then CVY_ERR_LOST, or once *is_over, which outlives the
       network: nothing waits on the host any more. Collective. */
    cvy_status (*open)(struct cvy_device *me, const char id[CVY_NET_ID], int rank, int n,
                       const _Atomic bool *is_over, void **net);
    /* What stands between the two happens together: no order among it can lock. */
    cvy_status (*begin)(void *net);
    cvy_status (*end)(void *net);
    cvy_status (*send)(void *net, const void *bytes, size_t n_bytes, int to);
    cvy_status (*recv)(void *net, void *bytes, size_t n_bytes, int from);
    /* The members' n floats at `from`, which may be `to`, added in the network's own order, to all of them: the same
       bits for all, but others with another number of members. */
    cvy_status (*sum)(void *net, const float *from, float *to, size_t n);
    /* Sends from a stream of the network's own, after all that is in the member's present stream so far: that one does
       not wait. *mark happens when the bytes may be written again; NULL: makes one (struct cvy_peers). */
    cvy_status (*post)(void *net, const void *bytes, size_t n_bytes, int to, void **mark);
    /* What is enqueued ends, whether its members come or not; the net is of no more use. Any thread. */
    void (*abort)(void *net);
    /* After the stream is done, or after abort. Accepts NULL. */
    void (*close)(void *net);
};

#endif
