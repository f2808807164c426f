/* Devices that reach each other's memory: those that share one GPU, and GPUs with peer access between them, once a
   transfer between the two was tried and came out right. */
#include "cuda.h"

#include <stdlib.h>
#include <string.h>

/* Enables access from `me` to `other`, both ways being asked for separately. */
static bool enable(const struct cuda_device *me, const struct cuda_device *other) {
    int can = 0;
    if (cudaDeviceCanAccessPeer(&can, me->gpu, other->gpu) != cudaSuccess || !can)
        return false;
    cudaError_t code = cudaDeviceEnablePeerAccess(other->gpu, 0);
    if (code == cudaErrorPeerAccessAlreadyEnabled) {
        (void)cudaGetLastError(); /* it is remembered, and this one is no error */
        return true;
    }
    return code == cudaSuccess;
}

enum { TRIAL_BYTES = 4096 };

/* Machines are known on which peer copies arrive wrong (an IOMMU between the GPUs): what `other` holds must be what
   `me` reads. */
static bool read_trial(struct cuda_device *me, void *mine, void *theirs) {
    unsigned char sent[TRIAL_BYTES], got[TRIAL_BYTES] = {0};
    for (int i = 0; i < TRIAL_BYTES; i++)
        sent[i] = (unsigned char)(i * 37 + me->gpu + 1);
    return cuda_send(me, theirs, sent, TRIAL_BYTES) == CVY_OK &&
           cudaMemcpyAsync(mine, theirs, TRIAL_BYTES, cudaMemcpyDeviceToDevice, cuda_stream(me)) ==
               cudaSuccess &&
           cuda_download(&me->base, got, mine, TRIAL_BYTES) == CVY_OK && memcmp(sent, got, TRIAL_BYTES) == 0;
}

static bool try_transfer(struct cuda_device *me, const struct cuda_device *other) {
    void *mine = NULL, *theirs = NULL;
    bool is_right =
        cudaSetDevice(other->gpu) == cudaSuccess && cudaMalloc(&theirs, TRIAL_BYTES) == cudaSuccess;
    is_right = is_right && cudaSetDevice(me->gpu) == cudaSuccess &&
               cudaMalloc(&mine, TRIAL_BYTES) == cudaSuccess && read_trial(me, mine, theirs);
    if (cuda_settle(me)) { /* freeing would wait for it for ever */
        (void)cudaFree(mine);
        (void)cudaFree(theirs);
    }
    return is_right;
}

static bool reaches(struct cvy_device *device, struct cvy_device *other_device) {
    struct cuda_device *me = cuda_device(device);
    const struct cuda_device *other = cuda_device(other_device);
    if (me->gpu == other->gpu)
        return true;
    if (cudaSetDevice(me->gpu) == cudaSuccess && enable(me, other) && try_transfer(me, other))
        return true;
    (void)cudaGetLastError();
    cvy_log(device->spec.log, CVY_LOG_INFO, "%s and %s: no peer access between them", device->name,
            other_device->name);
    return false;
}

static cvy_status mark(struct cvy_device *device, void **out) {
    struct cuda_device *me = cuda_device(device);
    cudaEvent_t event = *out;
    if (!event) {
        TRY_CUDA(me, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        *out = event;
    }
    TRY_CUDA(me, cudaEventRecord(event, cuda_stream(me)));
    return CVY_OK;
}

static cvy_status follow(struct cvy_device *device, void *event) {
    struct cuda_device *me = cuda_device(device);
    TRY_CUDA(me, cudaStreamWaitEvent(cuda_stream(me), (cudaEvent_t)event, 0));
    return CVY_OK;
}

static cvy_status copy(struct cvy_device *device, void *to, const void *from, size_t n_bytes) {
    struct cuda_device *me = cuda_device(device);
    TRY_CUDA(me, cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDeviceToDevice, cuda_stream(me)));
    return CVY_OK;
}

/* cudaMalloc may wait for the device, and then for ever. */
static cvy_status alloc(struct cvy_device *device, size_t n_bytes, void **out) {
    CVY_TRY(cuda_wait_all(cuda_device(device)));
    TRY_CUDA(cuda_device(device), cudaMalloc(out, n_bytes + !n_bytes));
    return CVY_OK;
}

static void unmark(void *event) {
    if (event)
        (void)cudaEventDestroy((cudaEvent_t)event);
}

/* Freeing waits for the device; for one that hangs it would wait for ever. */
static void release(struct cvy_device *device, void *memory) {
    struct cuda_device *me = cuda_device(device);
    if (memory && cudaSetDevice(me->gpu) == cudaSuccess && cuda_settle(me))
        (void)cudaFree(memory);
}

const struct cvy_peers cuda_peers = {
    .reaches = reaches,
    .mark = mark,
    .follow = follow,
    .copy = copy,
    .alloc = alloc,
    .unmark = unmark,
    .release = release,
};
