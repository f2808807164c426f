/* The pretend GPUs, and what the files of the stand-in share. Everything here is guarded by one lock. */
#ifndef FAKECUDA_GPU_H
#define FAKECUDA_GPU_H

#include "fakecuda.h"

/* the asynchronous test backend's */
#include "backends/async/faults.h"
#include "backends/async/order.h"
#include "backends/async/pick.h"
#include "base/vec.h"

enum { FAKE_MAX_GPUS = 64, FAKE_MAX_STREAMS = ASYNC_ORDER_STREAMS /* of all GPUs */ };

/* Memory that cudaMalloc gave; its address is never given again. */
struct fake_block {
    char *at;
    size_t n_bytes;
    int gpu;
    bool is_freed, is_open;
};

/* Something enqueued: a piece of work, or a wait for another stream. */
struct fake_item {
    struct async_what what;
    void (*run)(void *payload); /* NULL: a wait */
    void *payload;
    /* of a meeting with items of other streams: can it go on, and going on, true when it is over; and whose it is */
    bool (*is_ready)(const void *payload);
    bool (*go_on)(void *payload);
    const void *owner;
    bool (*is_intact)(const void *payload); /* of a copy: nobody else touched the pinned memory meanwhile */
    struct fake_block **blocks;             /* that it touches */
    int n_blocks;
    int wait_stream;     /* of a wait: until this stream has done ... */
    uint64_t wait_until; /* ... so many items */
    bool fails;
    double stall_s;
    int64_t stalled_until_ns;           /* 0: it has not begun */
    _Alignas(16) unsigned char bytes[]; /* payload, then blocks */
};

struct fake_meeting {
    const char *name;
    bool (*is_ready)(const void *payload);
    bool (*go_on)(void *payload);
    const void *owner, *payload;
    size_t payload_bytes;
};

struct fake_steps { /* of a capture: how many nodes of each stream come before */
    uint32_t at[FAKE_MAX_STREAMS];
};

struct CUstream_st {
    bool is_alive;
    struct CUgraph_st *capture; /* what is enqueued becomes a part of it; NULL: it is enqueued */
    struct fake_steps captured;
    struct fake_gpu *gpu;
    int number; /* among all streams */
    char name[32];
    struct fake_item **ring; /* cap places; item k lies at k % cap */
    size_t cap;
    uint64_t n_in, n_done;
    uint64_t n_waited; /* n_in when somebody last waited for it */
};

struct CUevent_st {
    struct fake_gpu *gpu;
    struct async_mark mark;     /* the newest record: for the check, ... */
    int stream;                 /* ... and for the queues: when this stream has done */
    uint64_t until;             /* so many items; 0: at once */
    bool is_captured;           /* the newest record was no record, but a place in a capture: ... */
    struct CUgraph_st *capture; /* ... this one, which goes on; NULL: it has ended */
    struct fake_steps steps;
    struct CUevent_st *next;
};

struct fake_gpu {
    int index;
    char name[16];
    int n_streams;  /* alive */
    uint64_t peers; /* bit k: it may touch the memory of GPU k */
    struct async_fault fail, stall;
    cudaError_t failure; /* what every call on it returns from now on */
    char reason[400];
};

struct fake_pinned { /* memory that cudaHostAlloc gave */
    char *at;
    size_t n_bytes;
};

struct fake_machine {
    bool is_awake; /* something was created and not given back */
    bool has_peers;
    size_t memory_bytes; /* of each GPU */
    struct fake_gpu gpus[FAKE_MAX_GPUS];
    struct async_order order; /* over all GPUs */
    struct async_picker picker;
    struct CUstream_st streams[FAKE_MAX_STREAMS];
    struct CUevent_st *events;
    CVY_VEC(struct fake_block *) blocks, freed;
    CVY_VEC(struct fake_pinned) pinned;
};

/* ---- gpus.c ------------------------------------------------------------------------------------------------ */

/* Locks the machine for the call `name`. What is wrong already with the thread's present GPU, or is ordered to go
   wrong, is returned; locked it is in any case. */
cudaError_t fake_enter(const char *name);
/* Its two halves. */
cudaError_t fake_lock(void);
cudaError_t fake_meet_failure(const char *name, struct fake_gpu *gpu);
/* The thread's present GPU. */
struct fake_gpu *fake_present(void);
/* What this thread has waited for. What other threads have says nothing: they order it by events, or not at all. */
struct async_mark *fake_waited_for(void);
/* Unlocks it, and lets it sleep when nothing is left. Returns the code. */
cudaError_t fake_leave(cudaError_t code);
extern struct fake_machine fake;
/* Remembers why for cudaGetErrorString. Returns the code. */
cudaError_t fake_complain(cudaError_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same with the newest error of the project's own. */
cudaError_t fake_complain_status(cudaError_t code);
/* What is wrong with this GPU. */
cudaError_t fake_failure(const struct fake_gpu *gpu);
/* From now on every call on the GPU fails: the complaint just made is the reason. */
cudaError_t fake_break(struct fake_gpu *gpu, cudaError_t code);
void fake_nap(void); /* unlocked meanwhile */

/* ---- gpu_memory.c ------------------------------------------------------------------------------------------ */

/* The block that this GPU may touch there, or NULL and a complaint. */
struct fake_block *fake_block_of(const struct fake_gpu *gpu, const char *what, const void *at,
                                 size_t n_bytes);
bool fake_is_host_memory(const void *at, size_t n_bytes);
/* Lets the host touch what the item touches. False and a complaint: it was freed meanwhile. */
bool fake_open_blocks(const struct fake_item *item);
void fake_shut_blocks(void);

/* ---- host_memory.c ----------------------------------------------------------------------------------------- */

/* All of it. */
bool fake_is_pinned(const void *at, size_t n_bytes);

/* ---- events.c ---------------------------------------------------------------------------------------------- */

/* Or a complaint. */
bool fake_is_event(cudaEvent_t event);

/* ---- queue.c ----------------------------------------------------------------------------------------------- */

/* Checks and enqueues; *payload is for the caller to fill. A range that the GPU may not touch breaks it. */
cudaError_t fake_push(struct CUstream_st *stream, const char *name, const struct cuda_range *ranges,
                      int n_ranges, void (*run)(void *payload), size_t payload_bytes, void **payload);
/* What follows in the stream waits until another one has done so many items. */
cudaError_t fake_push_wait(struct CUstream_st *stream, int for_stream, uint64_t until);
void fake_forget(struct CUstream_st *stream);
/* A meeting, as fake_enqueue. */
cudaError_t fake_enqueue_meeting(cudaStream_t stream, const struct cuda_range *ranges, int n_ranges,
                                 const struct fake_meeting *what);
/* The owner's meetings are over. */
void fake_drop(struct CUstream_st *stream, const void *owner);
struct fake_item *fake_head(const struct CUstream_st *stream);   /* NULL: it is empty */
struct fake_item *fake_newest(const struct CUstream_st *stream); /* that was just pushed */
void fake_pop(struct CUstream_st *stream);
/* fake_enter for a call on this stream, of whatever GPU. */
cudaError_t fake_enter_stream(const char *name, cudaStream_t stream);

/* ---- graphs.c ---------------------------------------------------------------------------------------------- */

/* What fake_push makes of a call into a stream that captures. */
cudaError_t fake_capture(struct CUstream_st *stream, const char *name, const struct cuda_range *ranges,
                         int n_ranges, void (*run)(void *payload), size_t payload_bytes, void **payload);
/* A call that a capture does not allow: in this stream, by this thread (NULL). It makes the capture useless. */
cudaError_t fake_refuse_in_capture(const char *name, struct CUstream_st *stream);
/* Of events: what they do when the stream or the event is part of a capture. False: neither is. */
bool fake_record_in_capture(struct CUevent_st *event, struct CUstream_st *stream);
bool fake_wait_in_capture(struct CUstream_st *stream, const struct CUevent_st *event, cudaError_t *code);
/* The stream goes. */
void fake_drop_capture(struct CUstream_st *stream);

/* ---- working.c --------------------------------------------------------------------------------------------- */

/* Works, in whatever streams, until this one is empty; NULL: all of the GPU are. For ever, if it stalls.
   Then the host knows of this stream that it is empty. */
cudaError_t fake_work_until_over(const struct fake_gpu *gpu, struct CUstream_st *stream);
/* The same, but not through a stall. */
void fake_work_what_goes(const struct CUstream_st *stream);

#endif
