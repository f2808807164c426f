/* Streams: what a device has that goes on by itself while the host does something else. Part of the backend
   interface (rt/backend.h); a CPU device completes every call on return and has none.

   Every call of a backend that works on device memory goes into the stream that `begin` chose last; a stream runs
   its calls in order, streams run at the same time. Nothing but these orders them:
     - a stream's own order;
     - `wait`: what follows in this stream comes after the newest `record` of that event before it;
     - the host: what it enqueues comes after what it has waited for (download, synchronize).
   This is what CUDA has: begin = the current cudaStream_t, record = cudaEventRecord, wait = cudaStreamWaitEvent, and
   a collective in a stream is either a host function (cudaLaunchHostFunc) or a call of a library that enqueues, as
   NCCL does. Every function is called by the owner's thread. */
#ifndef CVY_RT_STREAM_H
#define CVY_RT_STREAM_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct cvy_device;
struct cvy_instr;

enum { CVY_N_EVENTS = 64 };

struct cvy_access { /* of device memory */
    void *at;
    size_t n_bytes;
    bool is_write;
    const char *name; /* "partial sum", for messages; a constant */
};

struct cvy_host_call {
    const char *name; /* "reduce", for messages; a constant */
    cvy_status (*run)(void *argument);
    const void *argument; /* copied */
    size_t argument_bytes;
    const struct cvy_access *accesses; /* all that it may read and write on the device; copied */
    int n_accesses;
};

struct cvy_streams {
    /* The calls that follow are part of instruction `what` (copied; NULL: of none) in step `step`, and go into
       `stream`. Before the first one they go into stream 0. Also the mark that a profiler shows. */
    cvy_status (*begin)(struct cvy_device *device, int stream, const struct cvy_instr *what, uint64_t step);
    /* Event 0 .. CVY_N_EVENTS-1 happens when the calls so far in this stream are complete. */
    cvy_status (*record)(struct cvy_device *device, int event);
    /* CVY_ERR_FAILED when it was not recorded since the newest synchronize. */
    cvy_status (*wait)(struct cvy_device *device, int event);
    /* A host function in the stream's order: sends, receives, collectives. It may read and write what `accesses` name,
       at its host_address, may wait for other devices, and must not enqueue anything. */
    cvy_status (*call)(struct cvy_device *device, const struct cvy_host_call *call);
    /* Where the host finds device memory while it runs such a function. NULL: at the same address. */
    void *(*host_address)(struct cvy_device *device, void *at);
    /* Does what `run(argument)` enqueues into this stream: by calling it, or as it did when `key` came before, since
       the calls, their order and their operands are the same whenever the key is; only what lies in memory is not. It
       enqueues nothing but kernels, `zero` and `add`. NULL: there is nothing to gain. */
    cvy_status (*repeat)(struct cvy_device *device, uint64_t key, cvy_status (*run)(const void *argument),
                         const void *argument);
    /* From now on keys mean something else: kernels or memory have changed. The device has been waited for. */
    void (*forget)(struct cvy_device *device);
    /* Before the host waits for other devices: what was enqueued must go on meanwhile, since they may wait for it.
       Orders nothing. NULL: it goes on by itself. */
    cvy_status (*progress)(struct cvy_device *device);
    /* The first failure of what was enqueued, as far as it is known: waits for nothing. NULL: other calls tell. */
    cvy_status (*check)(struct cvy_device *device);
    /* The host waits for all streams, for the device's timeout_s at most: then CVY_ERR_LOST. The first failure of
       what was enqueued. */
    cvy_status (*synchronize)(struct cvy_device *device);
    /* After a failure: what was enqueued is forgotten or over when this returns. */
    void (*abandon)(struct cvy_device *device);
    /* Names a part of the arena ("slot 1"), for messages; the name is copied. NULL: not wanted. */
    void (*name_memory)(struct cvy_device *device, const void *at, size_t n_bytes, const char *name);
};

#endif
