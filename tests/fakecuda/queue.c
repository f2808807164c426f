/* Streams as queues: what is enqueued is checked at once, and runs later (working.c). */
#include "gpu.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 64 }; /* items of a queue */

/* ---- a queue ------------------------------------------------------------------------------------------------- */

struct fake_item *fake_head(const struct CUstream_st *q) {
    return q->n_done < q->n_in ? q->ring[q->n_done % q->cap] : NULL;
}

struct fake_item *fake_newest(const struct CUstream_st *q) {
    return q->ring[(q->n_in - 1) % q->cap];
}

void fake_pop(struct CUstream_st *q) { free(q->ring[q->n_done++ % q->cap]); }

void fake_forget(struct CUstream_st *q) {
    while (fake_head(q))
        fake_pop(q);
}

static cvy_status grow(struct CUstream_st *q) {
    size_t cap = q->cap ? 2 * q->cap : FIRST_CAP;
    struct fake_item **ring;
    CVY_TRY(CVY_ALLOC(ring, cap));
    for (uint64_t k = q->n_done; q->cap > 0 && k < q->n_in; k++)
        ring[k % cap] = q->ring[k % q->cap];
    free(q->ring);
    q->ring = ring;
    q->cap = cap;
    return CVY_OK;
}

static cvy_status append(struct CUstream_st *q, size_t payload_bytes, int n_blocks, struct fake_item **out) {
    const size_t blocks_at = cvy_align_up(payload_bytes, sizeof(void *));
    struct fake_item *item;
    void *memory;
    if (q->n_in - q->n_done == q->cap)
        CVY_TRY(grow(q));
    CVY_TRY(cvy_alloc_items(1, sizeof *item + blocks_at + (size_t)n_blocks * sizeof *item->blocks, &memory));
    *out = item = q->ring[q->n_in++ % q->cap] = memory;
    item->payload = item->bytes;
    item->blocks = (struct fake_block **)(item->bytes + blocks_at);
    item->n_blocks = n_blocks;
    return CVY_OK;
}

cudaError_t fake_push_wait(struct CUstream_st *stream, int for_stream, uint64_t until) {
    struct fake_item *item;
    if (append(stream, 0, 0, &item) != CVY_OK)
        return fake_complain_status(cudaErrorMemoryAllocation);
    item->wait_stream = for_stream;
    item->wait_until = until;
    return cudaSuccess;
}

/* ---- enqueueing ---------------------------------------------------------------------------------------------- */

struct found { /* what the ranges are, while they are checked */
    struct cvy_access *accesses;
    struct fake_block **blocks;
    int n_blocks;
};

/* May the GPU touch them at all? Which blocks are they of? */
static cudaError_t find_blocks(struct fake_gpu *gpu, const char *name, const struct cuda_range *ranges,
                               int n_ranges, struct found *out) {
    for (int i = 0; i < n_ranges; i++) {
        out->accesses[i] =
            (struct cvy_access){(void *)ranges[i].at, ranges[i].n_bytes, ranges[i].is_write, NULL};
        if (ranges[i].n_bytes == 0)
            continue;
        struct fake_block *block = fake_block_of(gpu, name, ranges[i].at, ranges[i].n_bytes);
        if (!block)
            return fake_break(gpu, cudaErrorIllegalAddress);
        if (out->n_blocks == 0 || out->blocks[out->n_blocks - 1] != block)
            out->blocks[out->n_blocks++] = block;
    }
    return cudaSuccess;
}

static cudaError_t push(struct CUstream_st *stream, const struct async_what *what, const struct found *found,
                        int n_ranges, size_t payload_bytes, struct fake_item **out) {
    async_order_follow(&fake.order, stream->number, fake_waited_for());
    if (async_order_access(&fake.order, what, found->accesses, n_ranges) != CVY_OK)
        return fake_complain_status(cudaErrorUnknown);
    if (append(stream, payload_bytes, found->n_blocks, out) != CVY_OK)
        return fake_complain_status(cudaErrorMemoryAllocation);
    memcpy((*out)->blocks, found->blocks, (size_t)found->n_blocks * sizeof *found->blocks);
    return cudaSuccess;
}

cudaError_t fake_push(struct CUstream_st *stream, const char *name, const struct cuda_range *ranges,
                      int n_ranges, void (*run)(void *payload), size_t payload_bytes, void **payload) {
    const struct async_what what = {.op = name, .stream = stream->number, .stream_name = stream->name};
    if (stream->capture)
        return fake_capture(stream, name, ranges, n_ranges, run, payload_bytes, payload);
    struct fake_gpu *gpu = stream->gpu;
    struct found found = {.n_blocks = 0};
    struct fake_item *item = NULL;
    cudaError_t code = cudaErrorMemoryAllocation;
    if (CVY_ALLOC(found.accesses, (size_t)n_ranges + 1) != CVY_OK ||
        CVY_ALLOC(found.blocks, (size_t)n_ranges + 1) != CVY_OK)
        (void)fake_complain_status(code);
    else
        code = find_blocks(gpu, name, ranges, n_ranges, &found);
    if (code == cudaSuccess)
        code = push(stream, &what, &found, n_ranges, payload_bytes, &item);
    free(found.accesses);
    free(found.blocks);
    if (!item)
        return code;
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

static cudaError_t enter_to_launch(cudaStream_t stream, const char *name) {
    cudaError_t code = fake_enter_stream("a launch", stream);
    if (code == cudaSuccess && stream->gpu != fake_present())
        code = fake_complain(cudaErrorInvalidResourceHandle, "%s: %s is launched into %s",
                             fake_present()->name, name, stream->name);
    return code;
}

cudaError_t fake_enqueue(cudaStream_t stream, const char *name, const struct cuda_range *ranges, int n_ranges,
                         void (*run)(void *payload), const void *payload, size_t payload_bytes) {
    void *copy = NULL;
    cudaError_t code = enter_to_launch(stream, name);
    if (code == cudaSuccess)
        code = fake_push(stream, name, ranges, n_ranges, run, payload_bytes, &copy);
    if (code == cudaSuccess && copy)
        memcpy(copy, payload, payload_bytes);
    return fake_leave(code);
}

/* ---- meetings ------------------------------------------------------------------------------------------------ */

static void run_nothing(void *payload) { (void)payload; }

cudaError_t fake_enqueue_meeting(cudaStream_t stream, const struct cuda_range *ranges, int n_ranges,
                                 const struct fake_meeting *what) {
    void *copy = NULL;
    cudaError_t code = enter_to_launch(stream, what->name);
    if (code == cudaSuccess)
        code = fake_refuse_in_capture(what->name, stream);
    if (code == cudaSuccess)
        code = fake_push(stream, what->name, ranges, n_ranges, run_nothing, what->payload_bytes, &copy);
    if (code != cudaSuccess || !copy)
        return fake_leave(code);
    memcpy(copy, what->payload, what->payload_bytes);
    struct fake_item *item = fake_newest(stream);
    item->is_ready = what->is_ready;
    item->go_on = what->go_on;
    item->owner = what->owner;
    return fake_leave(cudaSuccess);
}

void fake_drop(struct CUstream_st *stream, const void *owner) {
    for (uint64_t k = stream->n_done; k < stream->n_in; k++) {
        struct fake_item *item = stream->ring[k % stream->cap];
        if (item->owner != owner)
            continue;
        item->is_ready = NULL;
        item->go_on = NULL;
        item->owner = NULL;
    }
}

/* ---- streams ------------------------------------------------------------------------------------------------- */

static bool is_stream(cudaStream_t stream) {
    for (int s = 0; s < FAKE_MAX_STREAMS; s++) {
        if (stream == &fake.streams[s])
            return stream->is_alive;
    }
    return false;
}

cudaError_t fake_enter_stream(const char *name, cudaStream_t stream) {
    cudaError_t code = fake_lock();
    if (code != cudaSuccess)
        return code;
    if (!is_stream(stream))
        return fake_complain(cudaErrorInvalidResourceHandle, "%s: this is no stream", name);
    return fake_meet_failure(name, stream->gpu);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
    cudaError_t code = fake_enter("cudaStreamCreateWithFlags");
    int s = 0;
    while (s < FAKE_MAX_STREAMS && fake.streams[s].is_alive)
        s++;
    if (code == cudaSuccess && flags != cudaStreamNonBlocking)
        code = fake_complain(cudaErrorInvalidValue, "the stand-in has non-blocking streams alone");
    if (code == cudaSuccess && s == FAKE_MAX_STREAMS)
        code = fake_complain(cudaErrorInvalidValue, "the stand-in has %d streams at most", FAKE_MAX_STREAMS);
    if (code != cudaSuccess)
        return fake_leave(code);
    struct CUstream_st *stream = *out = &fake.streams[s];
    stream->is_alive = true;
    stream->gpu = fake_present();
    stream->number = s;
    snprintf(stream->name, sizeof stream->name, "stream %d of %s", s, stream->gpu->name);
    return fake_leave(cudaSuccess);
}

/* What it still has to do is done, unless it stalls. */
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    cudaError_t code = fake_enter_stream("cudaStreamDestroy", stream);
    if (!is_stream(stream))
        return fake_leave(code);
    fake_drop_capture(stream);
    fake_work_what_goes(stream);
    fake_forget(stream);
    free(stream->ring);
    stream->n_waited = stream->n_in;
    stream->ring = NULL;
    stream->cap = 0;
    stream->is_alive = false;
    return fake_leave(code);
}
