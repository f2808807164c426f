/* The network of the devices: NCCL, with communicators that never block, so that every wait has our deadline and can be
   given up by another thread. NCCL moves bytes alone, and sums are added up in our own order (src/comm/net.c), but with
   --fast-reduce. */
#include "cuda.h"

#include "base/mem.h"
#include "base/thread.h"

#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Static_assert(sizeof(ncclUniqueId) <= CVY_NET_ID, "a name must fit");
_Static_assert(sizeof(cudaUUID_t) == CVY_NET_PLACE, "a place is a GPU's number in the world");

struct net {
    struct cuda_device *me;
    pthread_mutex_t lock;        /* of comm against abort */
    ncclComm_t comm;             /* NULL: given up */
    const _Atomic bool *is_over; /* the run, whose end may come before anybody can give up this network */
    cudaEvent_t before;          /* what stood in the present stream when something was posted */
    struct cuda_posted own;
};

/* When this GPU itself has failed, that is why NCCL fails; else another device, or the way to it, is lost. */
static cvy_status failed(const struct net *net, ncclResult_t code, const char *what) {
    CVY_TRY(cuda_check(net->me));
    return CVY_FAIL(CVY_ERR_LOST, "%s: NCCL: %s (%s)", net->me->base.name, ncclGetErrorString(code), what);
}

static cvy_status given_up(const struct net *net) {
    return CVY_FAIL(CVY_ERR_LOST, "%s: the network was given up", net->me->base.name);
}

/* Calls NCCL unless the network is given up; what it answers at once: ncclInProgress is no failure. */
#define CALL_NCCL(net, call)                                   \
    do {                                                       \
        pthread_mutex_lock(&(net)->lock);                      \
        bool is_there_ = (net)->comm;                          \
        ncclResult_t code_ = is_there_ ? (call) : ncclSuccess; \
        pthread_mutex_unlock(&(net)->lock);                    \
        if (!is_there_)                                        \
            return given_up(net);                              \
        if (code_ != ncclSuccess && code_ != ncclInProgress)   \
            return failed((net), code_, #call);                \
    } while (0)

/* Waits until the call before is over. */
static cvy_status finish(struct net *net, const char *what) {
    const double timeout_s = net->me->base.spec.timeout_s;
    const int64_t start = cvy_now_ns();
    for (long nap_ns = 1000;; nap_ns = nap_ns < 1000000 ? 2 * nap_ns : nap_ns) {
        ncclResult_t state = ncclSuccess;
        CALL_NCCL(net, ncclCommGetAsyncError(net->comm, &state));
        if (state == ncclSuccess)
            return CVY_OK;
        if (state != ncclInProgress)
            return failed(net, state, what);
        if (atomic_load(net->is_over))
            return given_up(net);
        CVY_TRY(cuda_check(net->me)); /* the others may wait for what has failed here */
        double waited_s = (double)(cvy_now_ns() - start) * 1e-9;
        if (timeout_s > 0 && waited_s > timeout_s)
            return CVY_FAIL(
                CVY_ERR_LOST,
                "%s waited %.1f seconds to %s: another device is lost or slower than --timeout allows",
                net->me->base.name, waited_s, what);
        nanosleep(&(struct timespec){.tv_nsec = nap_ns}, NULL);
    }
}

static cvy_status make_id(char id[CVY_NET_ID]) {
    ncclUniqueId made;
    ncclResult_t code = ncclGetUniqueId(&made);
    if (code != ncclSuccess)
        return CVY_FAIL(CVY_ERR_FAILED, "NCCL: %s (ncclGetUniqueId)", ncclGetErrorString(code));
    memcpy(id, &made, sizeof made);
    return CVY_OK;
}

static cvy_status place(struct cvy_device *device, char out[CVY_NET_PLACE]) {
    const struct cuda_device *me = cuda_device(device);
    struct cudaDeviceProp p;
    TRY_CUDA(me, cudaGetDeviceProperties(&p, me->gpu));
    memcpy(out, &p.uuid, CVY_NET_PLACE);
    return CVY_OK;
}

static void abort_net(void *argument) {
    struct net *net = argument;
    pthread_mutex_lock(&net->lock);
    if (net->comm)
        (void)ncclCommAbort(net->comm);
    net->comm = NULL;
    pthread_mutex_unlock(&net->lock);
}

/* Says goodbye to the others; whoever does not answer is left. */
static cvy_status finalize(struct net *net) {
    CALL_NCCL(net, ncclCommFinalize(net->comm));
    CVY_TRY(finish(net, "part from the others"));
    CALL_NCCL(net, ncclCommDestroy(net->comm));
    net->comm = NULL;
    return CVY_OK;
}

/* Of a device that hangs they are left. Says nothing: why it is closed may have been said. */
static void close_own(struct net *net) {
    struct cuda_posted **at = &net->me->posted;
    bool is_done = net->own.stream && cuda_settle(net->me);
    while (*at && *at != &net->own)
        at = &(*at)->next;
    if (*at)
        *at = net->own.next;
    if (is_done)
        (void)cudaStreamDestroy(net->own.stream);
    if (net->before)
        (void)cudaEventDestroy(net->before);
}

static void close_net(void *argument) {
    struct net *net = argument;
    if (!net)
        return;
    if (net->comm && cudaSetDevice(net->me->gpu) == cudaSuccess)
        (void)finalize(net);
    abort_net(net);
    close_own(net);
    pthread_mutex_destroy(&net->lock);
    free(net);
}

static cvy_status meet(struct net *net, const char *id, int rank, int n) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId name;
    memcpy(&name, id, sizeof name);
    config.blocking = 0;
    ncclResult_t code = ncclCommInitRankConfig(&net->comm, n, name, rank, &config);
    if (code != ncclSuccess && code != ncclInProgress)
        return failed(net, code, "ncclCommInitRankConfig");
    return finish(net, "meet the others by NCCL");
}

static cvy_status open_net(struct cvy_device *device, const char id[CVY_NET_ID], int rank, int n,
                           const _Atomic bool *is_over, void **out) {
    struct net *net;
    CVY_TRY(CVY_ALLOC(net, 1));
    net->me = cuda_device(device);
    net->is_over = is_over;
    pthread_mutex_init(&net->lock, NULL); /* with default attributes it cannot fail */
    cvy_status status = meet(net, id, rank, n);
    if (status != CVY_OK) {
        abort_net(net);
        close_net(net);
        return status;
    }
    *out = net;
    return CVY_OK;
}

static cvy_status begin(void *argument) {
    struct net *net = argument;
    CALL_NCCL(net, ncclGroupStart());
    return CVY_OK;
}

/* The group is this thread's: it ends also when the network was given up in between. */
static cvy_status end(void *argument) {
    struct net *net = argument;
    pthread_mutex_lock(&net->lock);
    bool is_there = net->comm;
    ncclResult_t code = ncclGroupEnd();
    pthread_mutex_unlock(&net->lock);
    if (!is_there)
        return given_up(net);
    if (code != ncclSuccess && code != ncclInProgress)
        return failed(net, code, "ncclGroupEnd");
    return finish(net, "enqueue sends and receives");
}

static cvy_status send_bytes(void *argument, const void *bytes, size_t n_bytes, int to) {
    struct net *net = argument;
    CALL_NCCL(net, ncclSend(bytes, n_bytes, ncclUint8, to, net->comm, cuda_stream(net->me)));
    return CVY_OK;
}

static cvy_status open_own(struct net *net) {
    struct cuda_device *me = net->me;
    if (!net->before)
        TRY_CUDA(me, cudaEventCreateWithFlags(&net->before, cudaEventDisableTiming));
    if (net->own.stream)
        return CVY_OK;
    TRY_CUDA(me, cudaStreamCreateWithFlags(&net->own.stream, cudaStreamNonBlocking));
    net->own.next = me->posted;
    me->posted = &net->own;
    return CVY_OK;
}

static cvy_status post(void *argument, const void *bytes, size_t n_bytes, int to, void **mark) {
    struct net *net = argument;
    cudaEvent_t event = *mark;
    CVY_TRY(open_own(net));
    if (!event)
        TRY_CUDA(net->me, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    *mark = event;
    TRY_CUDA(net->me, cudaEventRecord(net->before, cuda_stream(net->me)));
    TRY_CUDA(net->me, cudaStreamWaitEvent(net->own.stream, net->before, 0));
    /* a group of one: NCCL makes it itself */
    CALL_NCCL(net, ncclSend(bytes, n_bytes, ncclUint8, to, net->comm, net->own.stream));
    CVY_TRY(finish(net, "enqueue a message"));
    TRY_CUDA(net->me, cudaEventRecord(event, net->own.stream));
    return CVY_OK;
}

static cvy_status recv_bytes(void *argument, void *bytes, size_t n_bytes, int from) {
    struct net *net = argument;
    CALL_NCCL(net, ncclRecv(bytes, n_bytes, ncclUint8, from, net->comm, cuda_stream(net->me)));
    return CVY_OK;
}

static cvy_status sum(void *argument, const float *from, float *to, size_t n) {
    struct net *net = argument;
    CALL_NCCL(net, ncclAllReduce(from, to, n, ncclFloat32, ncclSum, net->comm, cuda_stream(net->me)));
    return finish(net, "enqueue a sum");
}

const struct cvy_net cuda_net = {
    .name = "NCCL",
    .make_id = make_id,
    .place = place,
    .open = open_net,
    .begin = begin,
    .end = end,
    .send = send_bytes,
    .recv = recv_bytes,
    .sum = sum,
    .post = post,
    .abort = abort_net,
    .close = close_net,
};
