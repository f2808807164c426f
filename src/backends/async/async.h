/* The asynchronous test backend's device, and what its files share. See async.c. */
#ifndef CVY_ASYNC_ASYNC_H
#define CVY_ASYNC_ASYNC_H

#include "backends/async/faults.h"
#include "backends/async/order.h"
#include "backends/async/pick.h"
#include "rt/backend.h"

struct async_device;

/* Something enqueued: a piece of work, or a wait for another stream. */
struct async_item {
    struct async_what what;
    cvy_status (*run)(struct async_device *device, void *payload); /* NULL: a wait */
    int wait_stream;     /* of a wait: until this stream has done ... */
    uint64_t wait_until; /* ... so many items */
    _Alignas(16) unsigned char payload[];
};

struct async_queue {
    struct async_item **ring; /* cap places; item k lies at k % cap */
    size_t cap;
    uint64_t n_in, n_done;
};

struct async_device {
    struct cvy_device base;
    struct cvy_device *inner; /* does the work */
    struct async_kernel_table *kernels;
    struct async_order order;
    struct async_faults faults;
    struct async_queue queues[CVY_N_STREAMS];
    struct { /* the newest record of an event */
        int stream;
        uint64_t until;
    } events[CVY_N_EVENTS];
    struct async_picker picker;
    int stream;             /* of the calls that follow */
    struct async_what what; /* the same, without operator */
};

static inline struct async_device *async_device(struct cvy_device *device) {
    return (struct async_device *)device;
}

/* ---- queue.c ----------------------------------------------------------------------------------------- */

/* Enqueues work into the current stream, after a look at what it accesses. `op` names it in messages and faults.
   *payload: zeroed memory for `run`, released after it ran. */
cvy_status async_enqueue(struct async_device *device, const char *op, const struct cvy_access *accesses,
                         int n, cvy_status (*run)(struct async_device *, void *), size_t payload_bytes,
                         void **payload);
/* Runs items, in a random one of the orders that the events allow, until `stream` is empty (-1: all are). The first
   failure ends it and empties the queues. */
cvy_status async_run(struct async_device *device, int stream);
cvy_status async_queues_open(struct async_device *device);
void async_queues_free(struct async_device *device);

extern const struct cvy_streams async_streams;

/* ---- async.c ----------------------------------------------------------------------------------------- */

/* Lets the host touch the device's memory, and lets it no more. */
cvy_status async_memory_open(struct async_device *device);
cvy_status async_memory_shut(struct async_device *device);

/* ---- kernels.c --------------------------------------------------------------------------------------- */

/* Wraps all kernels of the inner backend. */
cvy_status async_kernels_open(struct async_device *device);
void async_kernels_close(struct async_device *device);
const struct cvy_kernel_impl *async_select(const struct cvy_device *device, const struct cvy_call *call,
                                           bool *is_fallback);

#endif
