/* Pinned memory of the host. Copies between a GPU and other memory of the host would keep the host inside the call, for
   ever if the GPU stands still; so they pass through a ring of pinned memory, in pieces. Each stream has a ring, whose
   pieces are free again in the order of the stream. */
#ifndef CONVOY_CUDA_PINNED_H
#define CONVOY_CUDA_PINNED_H

#include "base/status.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

enum { CUDA_RING_BYTES = 8 << 20, CUDA_PIECE_BYTES = 1 << 20, CUDA_RING_PIECES = 256 };

struct cuda_piece {
    cudaEvent_t is_over; /* its copy; NULL: the piece was never used */
    uint64_t begin;      /* lies at begin % CUDA_RING_BYTES */
    size_t n_bytes;
    void *to; /* of a download: where the host wants the bytes; else NULL */
};

struct cuda_ring {
    char *memory;
    uint64_t end;         /* of the newest piece */
    uint64_t n_in, n_out; /* pieces begun, and free again; piece k stands at k % CUDA_RING_PIECES */
    struct cuda_piece pieces[CUDA_RING_PIECES];
};

struct cuda_device;

cvy_status cuda_ring_open(struct cuda_device *me, struct cuda_ring *ring);
void cuda_ring_close(struct cuda_ring *ring);
/* The host has waited for the stream, or gives up what it wanted from it: all pieces are free. */
void cuda_ring_clear(struct cuda_ring *ring);

/* In the present stream. The host's bytes are taken before `send` returns; what `fetch` wants is there after
   `arrive`. They wait for the GPU for the device's timeout_s at most. */
cvy_status cuda_send(struct cuda_device *me, void *to, const void *host, size_t n_bytes);
cvy_status cuda_fetch(struct cuda_device *me, void *host, const void *from, size_t n_bytes);
cvy_status cuda_arrive(struct cuda_device *me);

#endif
