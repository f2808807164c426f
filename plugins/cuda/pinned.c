/* See pinned.h. */
#include "cuda.h"

#include <string.h>

cvy_status cuda_ring_open(struct cuda_device *me, struct cuda_ring *ring) {
    void *memory;
    cudaError_t code = cudaHostAlloc(&memory, CUDA_RING_BYTES, cudaHostAllocDefault);
    if (code == cudaErrorMemoryAllocation)
        return CVY_FAIL(CVY_ERR_MEMORY,
                        "%s: no %d MiB of pinned memory on the host; free some of its memory, or use fewer "
                        "devices",
                        me->base.name, CUDA_RING_BYTES >> 20);
    TRY_CUDA(me, code);
    ring->memory = memory;
    return CVY_OK;
}

void cuda_ring_close(struct cuda_ring *ring) {
    for (int k = 0; k < CUDA_RING_PIECES; k++) {
        if (ring->pieces[k].is_over)
            (void)cudaEventDestroy(ring->pieces[k].is_over);
    }
    if (ring->memory)
        (void)cudaFreeHost(ring->memory);
    memset(ring, 0, sizeof *ring);
}

void cuda_ring_clear(struct cuda_ring *ring) { ring->n_out = ring->n_in; }

static char *bytes_of(const struct cuda_ring *ring, const struct cuda_piece *piece) {
    return ring->memory + piece->begin % CUDA_RING_BYTES;
}

/* ---- pieces ------------------------------------------------------------------------------------------------- */

static struct cuda_piece *oldest(struct cuda_ring *ring) {
    return &ring->pieces[ring->n_out % CUDA_RING_PIECES];
}

static cvy_status free_oldest(struct cuda_device *me, struct cuda_ring *ring) {
    struct cuda_piece *piece = oldest(ring);
    CVY_TRY(cuda_wait_event(me, piece->is_over));
    if (piece->to)
        memcpy(piece->to, bytes_of(ring, piece), piece->n_bytes);
    ring->n_out++;
    return CVY_OK;
}

/* A piece does not go over the end of the memory: it rather begins at its start. */
static uint64_t place_for(const struct cuda_ring *ring, size_t n_bytes) {
    const uint64_t begin = (ring->end + 255) / 256 * 256, left = CUDA_RING_BYTES - begin % CUDA_RING_BYTES;
    return n_bytes <= left ? begin : begin + left;
}

/* The next one, free of what was in it. */
static cvy_status take(struct cuda_device *me, struct cuda_ring *ring, size_t n_bytes,
                       struct cuda_piece **out) {
    const uint64_t begin = place_for(ring, n_bytes);
    struct cuda_piece *piece = *out = &ring->pieces[ring->n_in % CUDA_RING_PIECES];
    while (ring->n_in - ring->n_out == CUDA_RING_PIECES ||
           (ring->n_in > ring->n_out && begin + n_bytes - oldest(ring)->begin > CUDA_RING_BYTES))
        CVY_TRY(free_oldest(me, ring));
    if (!piece->is_over)
        TRY_CUDA(me, cudaEventCreateWithFlags(&piece->is_over, cudaEventDisableTiming));
    piece->begin = begin;
    piece->n_bytes = n_bytes;
    piece->to = NULL;
    return CVY_OK;
}

/* Its copy was enqueued. */
static cvy_status give(struct cuda_device *me, struct cuda_ring *ring, struct cuda_piece *piece) {
    TRY_CUDA(me, cudaEventRecord(piece->is_over, cuda_stream(me)));
    ring->end = piece->begin + piece->n_bytes;
    ring->n_in++;
    return CVY_OK;
}

static size_t first_of(size_t n_bytes) { return n_bytes < CUDA_PIECE_BYTES ? n_bytes : CUDA_PIECE_BYTES; }

/* ---- copies ------------------------------------------------------------------------------------------------- */

cvy_status cuda_send(struct cuda_device *me, void *to, const void *host, size_t n_bytes) {
    struct cuda_ring *ring = &me->rings[me->stream];
    for (size_t at = 0, n; at < n_bytes; at += n) {
        struct cuda_piece *piece;
        n = first_of(n_bytes - at);
        CVY_TRY(take(me, ring, n, &piece));
        memcpy(bytes_of(ring, piece), (const char *)host + at, n);
        TRY_CUDA(me, cudaMemcpyAsync((char *)to + at, bytes_of(ring, piece), n, cudaMemcpyHostToDevice,
                                     cuda_stream(me)));
        CVY_TRY(give(me, ring, piece));
    }
    return CVY_OK;
}

static cvy_status fetch(struct cuda_device *me, struct cuda_ring *ring, char *host, const char *from,
                        size_t n_bytes) {
    for (size_t at = 0, n; at < n_bytes; at += n) {
        struct cuda_piece *piece;
        n = first_of(n_bytes - at);
        CVY_TRY(take(me, ring, n, &piece));
        TRY_CUDA(me, cudaMemcpyAsync(bytes_of(ring, piece), from + at, n, cudaMemcpyDeviceToHost,
                                     cuda_stream(me)));
        piece->to = host + at;
        CVY_TRY(give(me, ring, piece));
    }
    return CVY_OK;
}

/* After a failure nobody waits for the bytes any more, and their place may soon be gone. */
static cvy_status give_up(struct cuda_ring *ring, cvy_status status) {
    for (uint64_t k = ring->n_out; status != CVY_OK && k < ring->n_in; k++)
        ring->pieces[k % CUDA_RING_PIECES].to = NULL;
    return status;
}

cvy_status cuda_fetch(struct cuda_device *me, void *host, const void *from, size_t n_bytes) {
    struct cuda_ring *ring = &me->rings[me->stream];
    return give_up(ring, fetch(me, ring, host, from, n_bytes));
}

cvy_status cuda_arrive(struct cuda_device *me) {
    struct cuda_ring *ring = &me->rings[me->stream];
    while (ring->n_out < ring->n_in) {
        cvy_status status = free_oldest(me, ring);
        if (status != CVY_OK)
            return give_up(ring, status);
    }
    return CVY_OK;
}
