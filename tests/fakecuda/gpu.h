/* A pretend GPU, and what the files of the stand-in share. Everything here is guarded by the GPU's lock. */
#ifndef FAKECUDA_GPU_H
#define FAKECUDA_GPU_H

#include "fakecuda.h"

/* the asynchronous test backend's */
#include "backends/async/faults.h"
#include "backends/async/order.h"
#include "backends/async/pick.h"

#include <pthread.h>

/* Something enqueued: a piece of work, or a wait for another stream. */
struct fake_item {
    struct async_what what;
    void (*run)(void *payload); /* NULL: a wait */
    int wait_stream;            /* of a wait: until this stream has done ... */
    uint64_t wait_until;        /* ... so many items */
    bool fails;
    double stall_s;
    int64_t stalled_until_ns; /* 0: it has not begun */
    _Alignas(16) unsigned char payload[];
};

struct CUstream_st {
    struct fake_gpu *gpu;
    int number;
    bool is_alive;
    struct fake_item **ring; /* cap places; item k lies at k % cap */
    size_t cap;
    uint64_t n_in, n_done;
};

struct CUevent_st {
    struct async_mark mark; /* the newest record: for the check, ... */
    int stream;             /* ... and for the queues: when this stream has done */
    uint64_t until;         /* so many items; 0: at once */
    struct CUevent_st *next;
};

struct fake_gpu {
    pthread_mutex_t lock;
    int index;
    char name[16];
    bool is_awake;
    struct async_order order;
    struct async_picker picker;
    struct async_fault fail, stall;
    struct CUstream_st streams[ASYNC_ORDER_STREAMS];
    struct CUevent_st *events;
    cudaError_t failure; /* what every call returns from now on */
    char reason[400];
};

/* ---- gpu.c ----------------------------------------------------------------------------------------------------------- */

/* The thread's present GPU, locked and awake, for the call `name`. Else an error, and nothing is locked. */
cudaError_t fake_enter(const char *name, struct fake_gpu **out);
/* For calls that give back: locked although it is broken, which is what is returned. */
cudaError_t fake_enter_anyway(const char *name, struct fake_gpu **out);
/* Unlocks it, and lets it sleep when nothing is left on it. Returns the code. */
cudaError_t fake_leave(struct fake_gpu *gpu, cudaError_t code);
/* Remembers why for cudaGetErrorString. Returns the code. */
cudaError_t fake_complain(cudaError_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same with the newest error of the project's own. */
cudaError_t fake_complain_status(cudaError_t code);
/* From now on every call on the GPU fails: the complaint just made is the reason. */
cudaError_t fake_break(struct fake_gpu *gpu, cudaError_t code);
void fake_sleep_a_little(struct fake_gpu *gpu); /* unlocked meanwhile */

/* ---- gpu_memory.c ---------------------------------------------------------------------------------------------------- */

/* Lets the host touch the GPU's memory, and lets it no more. */
void fake_memory_open(const struct fake_gpu *gpu);
void fake_memory_shut(const struct fake_gpu *gpu);
/* Does it lie in one block of this GPU's memory? */
cudaError_t fake_memory_check(const struct fake_gpu *gpu, const char *what, const void *at, size_t n_bytes);
bool fake_memory_is_host(const void *at, size_t n_bytes);

/* ---- queue.c --------------------------------------------------------------------------------------------------------- */

/* Checks and enqueues; *payload is for the caller to fill. A range that is not the GPU's own breaks the GPU. */
cudaError_t fake_push(struct fake_gpu *gpu, struct CUstream_st *stream, const char *name,
                      const struct cuda_range *ranges, int n_ranges, void (*run)(void *payload),
                      size_t payload_bytes, void **payload);
/* What follows in the stream waits until another one has done so many items. */
cudaError_t fake_push_wait(struct CUstream_st *stream, int for_stream, uint64_t until);
/* The GPU's stream, or NULL and a complaint. */
struct CUstream_st *fake_stream_of(struct fake_gpu *gpu, cudaStream_t stream);
/* Works until the stream is empty; NULL: all are. For ever, if it stalls. */
cudaError_t fake_work_until_over(struct fake_gpu *gpu, struct CUstream_st *stream);
/* The host knows that the stream is empty. */
void fake_host_has_waited(struct fake_gpu *gpu, const struct CUstream_st *stream);
void fake_forget_all(struct fake_gpu *gpu);

#endif
