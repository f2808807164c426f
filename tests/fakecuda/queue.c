/* Streams as queues: what is enqueued is checked at once and runs when somebody waits or asks, always the head of a stream
   whose waits are over, in an order that a seed decides. The GPU's thread runs it, or whoever waits for the GPU. */
#include "gpu.h"

#include "base/mem.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 64 }; /* items of a queue */
enum { ASKED = 128 };    /* items that run, at most, when somebody only asks */
static const uint32_t ALL = UINT32_MAX;

/* ---- a queue ----------------------------------------------------------------------------------------------------------- */

static struct fake_item *head(const struct CUstream_st *q) {
    return q->n_done < q->n_in ? q->ring[q->n_done % q->cap] : NULL;
}

static void pop(struct CUstream_st *q) { free(q->ring[q->n_done++ % q->cap]); }

static cvy_status grow(struct CUstream_st *q) {
    size_t cap = q->cap ? 2 * q->cap : FIRST_CAP;
    struct fake_item **ring;
    CVY_TRY(CVY_ALLOC(ring, cap));
    for (uint64_t k = q->n_done; k < q->n_in; k++)
        ring[k % cap] = q->ring[k % q->cap];
    free(q->ring);
    q->ring = ring;
    q->cap = cap;
    return CVY_OK;
}

static struct fake_item *append(struct CUstream_st *q, size_t payload_bytes) {
    void *item;
    if ((q->n_in - q->n_done == q->cap && grow(q) != CVY_OK) ||
        cvy_alloc_items(1, sizeof(struct fake_item) + payload_bytes, &item) != CVY_OK)
        return NULL;
    return q->ring[q->n_in++ % q->cap] = item;
}

void fake_forget_all(struct fake_gpu *gpu) {
    for (int s = 0; s < ASYNC_ORDER_STREAMS; s++) {
        while (head(&gpu->streams[s]))
            pop(&gpu->streams[s]);
    }
}

/* ---- enqueueing -------------------------------------------------------------------------------------------------------- */

struct CUstream_st *fake_stream_of(struct fake_gpu *gpu, cudaStream_t stream) {
    for (int s = 0; s < ASYNC_ORDER_STREAMS; s++) {
        if (stream == &gpu->streams[s] && gpu->streams[s].is_alive)
            return stream;
    }
    (void)fake_complain(cudaErrorInvalidResourceHandle, "%s: this is no stream of it", gpu->name);
    return NULL;
}

static cudaError_t check(struct fake_gpu *gpu, const struct async_what *what, const struct cuda_range *ranges,
                         int n_ranges) {
    struct cvy_access *accesses;
    for (int i = 0; i < n_ranges; i++) {
        cudaError_t code = fake_memory_check(gpu, what->op, ranges[i].at, ranges[i].n_bytes);
        if (code != cudaSuccess)
            return fake_break(gpu, code);
    }
    if (CVY_ALLOC(accesses, (size_t)n_ranges + 1) != CVY_OK)
        return fake_complain_status(cudaErrorMemoryAllocation);
    for (int i = 0; i < n_ranges; i++)
        accesses[i] = (struct cvy_access){(void *)ranges[i].at, ranges[i].n_bytes, ranges[i].is_write, NULL};
    cvy_status status = async_order_access(&gpu->order, what, accesses, n_ranges);
    free(accesses);
    return status == CVY_OK ? cudaSuccess : fake_complain_status(cudaErrorUnknown);
}

cudaError_t fake_push(struct fake_gpu *gpu, struct CUstream_st *stream, const char *name,
                      const struct cuda_range *ranges, int n_ranges, void (*run)(void *payload),
                      size_t payload_bytes, void **payload) {
    const struct async_what what = {.op = name, .stream = stream->number};
    cudaError_t code = check(gpu, &what, ranges, n_ranges);
    if (code != cudaSuccess)
        return code;
    struct fake_item *item = append(stream, payload_bytes);
    if (!item)
        return fake_complain_status(cudaErrorMemoryAllocation);
    item->what = what;
    item->run = run;
    item->fails = async_fault_is_due(&gpu->fail, &what);
    if (async_fault_is_due(&gpu->stall, &what)) {
        item->stall_s = gpu->stall.seconds;
        gpu->stall.is_on = false;
    }
    *payload = item->payload;
    return cudaSuccess;
}

cudaError_t fake_enqueue(cudaStream_t stream, const char *name, const struct cuda_range *ranges, int n_ranges,
                         void (*run)(void *payload), const void *payload, size_t payload_bytes) {
    struct fake_gpu *gpu;
    void *copy;
    cudaError_t code = fake_enter("a launch", &gpu);
    if (code != cudaSuccess)
        return code;
    if (!fake_stream_of(gpu, stream))
        return fake_leave(gpu, cudaErrorInvalidResourceHandle);
    code = fake_push(gpu, stream, name, ranges, n_ranges, run, payload_bytes, &copy);
    if (code == cudaSuccess)
        memcpy(copy, payload, payload_bytes);
    return fake_leave(gpu, code);
}

cudaError_t fake_push_wait(struct CUstream_st *stream, int for_stream, uint64_t until) {
    struct fake_item *item = append(stream, 0);
    if (!item)
        return fake_complain_status(cudaErrorMemoryAllocation);
    item->wait_stream = for_stream;
    item->wait_until = until;
    return cudaSuccess;
}

/* ---- working off ------------------------------------------------------------------------------------------------------- */

static bool is_stalled(struct fake_item *item) {
    if (item->stall_s <= 0)
        return false;
    int64_t now = cvy_now_ns();
    if (item->stalled_until_ns == 0)
        item->stalled_until_ns = now + (int64_t)(item->stall_s * 1e9);
    return now < item->stalled_until_ns;
}

/* Can the stream's head run? A wait that is over is taken off on the way. */
static bool is_ready(struct fake_gpu *gpu, struct CUstream_st *q) {
    struct fake_item *item;
    while ((item = head(q)) && !item->run) {
        if (gpu->streams[item->wait_stream].n_done < item->wait_until)
            return false;
        pop(q);
    }
    return item && !is_stalled(item);
}

static int pick(struct fake_gpu *gpu) {
    bool ready[ASYNC_ORDER_STREAMS];
    uint64_t before, after = 0;
    do { /* a wait taken off one stream may free another */
        before = after;
        after = 0;
        for (int s = 0; s < ASYNC_ORDER_STREAMS; s++) {
            ready[s] = is_ready(gpu, &gpu->streams[s]);
            after += gpu->streams[s].n_done;
        }
    } while (before != after);
    return async_pick(&gpu->picker, ready, ASYNC_ORDER_STREAMS);
}

static bool is_over(const struct fake_gpu *gpu, const struct CUstream_st *stream) {
    for (int s = 0; s < ASYNC_ORDER_STREAMS; s++) {
        if ((!stream || stream == &gpu->streams[s]) && head(&gpu->streams[s]))
            return false;
    }
    return true;
}

static void run_head(struct fake_gpu *gpu, struct CUstream_st *q) {
    struct fake_item *item = head(q);
    if (item->fails) {
        (void)fake_complain(cudaErrorLaunchFailure, "%s: %s (stream %d) fails, as FAKECUDA_FAIL orders",
                            gpu->name, item->what.op, q->number);
        (void)fake_break(gpu, cudaErrorLaunchFailure);
        return;
    }
    item->run(item->payload);
    pop(q);
}

/* Runs at most n_most items, until the stream is empty (NULL: all are). False when nothing can go on: a stall. */
static bool work(struct fake_gpu *gpu, struct CUstream_st *stream, uint32_t n_most) {
    bool goes_on = true;
    if (is_over(gpu, stream))
        return true;
    fake_memory_open(gpu);
    for (uint32_t n = 0; n < n_most && goes_on && !is_over(gpu, stream); n++) {
        int s = pick(gpu);
        goes_on = s >= 0;
        if (goes_on)
            run_head(gpu, &gpu->streams[s]);
    }
    fake_memory_shut(gpu);
    return goes_on || is_over(gpu, stream);
}

cudaError_t fake_work_until_over(struct fake_gpu *gpu, struct CUstream_st *stream) {
    while (!work(gpu, stream, ALL))
        fake_sleep_a_little(gpu);
    return gpu->failure == cudaSuccess ? cudaSuccess : fake_complain(gpu->failure, "%s", gpu->reason);
}

void fake_host_has_waited(struct fake_gpu *gpu, const struct CUstream_st *stream) {
    async_order_host(&gpu->order, stream->number);
    if (async_order_is_settled(&gpu->order))
        async_order_settle(&gpu->order);
}

/* ---- streams ----------------------------------------------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
    struct fake_gpu *gpu;
    cudaError_t code = fake_enter("cudaStreamCreateWithFlags", &gpu);
    if (code != cudaSuccess)
        return code;
    if (flags != cudaStreamNonBlocking)
        return fake_leave(gpu, fake_complain(cudaErrorInvalidValue,
                                             "%s: the stand-in has non-blocking streams alone", gpu->name));
    for (int s = 0; s < ASYNC_ORDER_STREAMS; s++) {
        struct CUstream_st *stream = &gpu->streams[s];
        if (stream->is_alive)
            continue;
        stream->is_alive = true;
        if (gpu->order.n_streams <= s)
            gpu->order.n_streams = s + 1;
        *out = stream;
        return fake_leave(gpu, cudaSuccess);
    }
    return fake_leave(gpu, fake_complain(cudaErrorInvalidValue, "%s: the stand-in has %d streams at most",
                                         gpu->name, ASYNC_ORDER_STREAMS));
}

/* What it still has to do is done, unless it stalls. */
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    struct fake_gpu *gpu;
    cudaError_t code = fake_enter_anyway("cudaStreamDestroy", &gpu);
    if (!fake_stream_of(gpu, stream))
        return fake_leave(gpu, cudaErrorInvalidResourceHandle);
    (void)work(gpu, stream, ALL);
    while (head(stream))
        pop(stream);
    free(stream->ring);
    stream->ring = NULL;
    stream->cap = 0;
    stream->is_alive = false;
    return fake_leave(gpu, code);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    struct fake_gpu *gpu;
    cudaError_t code = fake_enter("cudaStreamSynchronize", &gpu);
    if (code != cudaSuccess)
        return code;
    if (!fake_stream_of(gpu, stream))
        return fake_leave(gpu, cudaErrorInvalidResourceHandle);
    code = fake_work_until_over(gpu, stream);
    if (code == cudaSuccess)
        fake_host_has_waited(gpu, stream);
    return fake_leave(gpu, code);
}

/* Some of what is enqueued happens meanwhile: nothing would otherwise. */
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    struct fake_gpu *gpu;
    cudaError_t code = fake_enter("cudaStreamQuery", &gpu);
    if (code != cudaSuccess)
        return code;
    if (!fake_stream_of(gpu, stream))
        return fake_leave(gpu, cudaErrorInvalidResourceHandle);
    (void)work(gpu, stream, 1 + cvy_rng_below(&gpu->picker.rng, ASKED));
    if (gpu->failure != cudaSuccess)
        return fake_leave(gpu, fake_complain(gpu->failure, "%s", gpu->reason));
    if (!is_over(gpu, stream))
        return fake_leave(gpu, cudaErrorNotReady);
    fake_host_has_waited(gpu, stream);
    return fake_leave(gpu, cudaSuccess);
}
