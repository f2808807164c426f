/* The machine with its pretend GPUs: its lock, its life between the first thing created and the last one given back,
   and what is said of failures. */
#include "gpu.h"

#include "base/text.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEFAULT_GPUS = 8 };

struct fake_machine fake;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int present;
static _Thread_local struct async_mark waited_for;
static _Thread_local struct {
    cudaError_t code, unread; /* of cudaGetErrorString, of cudaGetLastError */
    char reason[400];
} newest;

/* ---- what is said -------------------------------------------------------------------------------------------- */

cudaError_t fake_complain(cudaError_t code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(newest.reason, sizeof newest.reason, format, list);
    va_end(list);
    newest.unread = newest.code = code;
    return code;
}

cudaError_t fake_complain_status(cudaError_t code) { return fake_complain(code, "%s", cvy_error()); }

cudaError_t fake_failure(const struct fake_gpu *gpu) {
    return gpu->failure == cudaSuccess ? cudaSuccess : fake_complain(gpu->failure, "%s", gpu->reason);
}

cudaError_t fake_break(struct fake_gpu *gpu, cudaError_t code) {
    gpu->failure = code;
    snprintf(gpu->reason, sizeof gpu->reason, "%s", newest.reason);
    for (int s = 0; s < FAKE_MAX_STREAMS; s++) {
        if (fake.streams[s].gpu == gpu)
            fake_forget(&fake.streams[s]);
    }
    return code;
}

const char *fake_reason(const char *otherwise) { return newest.reason[0] ? newest.reason : otherwise; }

const char *cudaGetErrorString(cudaError_t code) {
    if (code == newest.code)
        return newest.reason;
    return code == cudaSuccess                 ? "no error"
           : code == cudaErrorNotReady         ? "not ready"
           : code == cudaErrorMemoryAllocation ? "out of memory"
                                               : "an error that the stand-in did not explain";
}

cudaError_t cudaGetLastError(void) {
    cudaError_t code = newest.unread;
    newest.unread = cudaSuccess;
    return code;
}

/* ---- the machine's life -------------------------------------------------------------------------------------- */

/* A number from `least` to `most`; *value stays as it is when it is not set. */
static cudaError_t read_number(const char *variable, int64_t least, int64_t most, int64_t *value) {
    const char *text = getenv(variable);
    if (!text || !*text)
        return cudaSuccess;
    if (!cvy_parse_i64(text, value) || *value < least || *value > most)
        return fake_complain(cudaErrorInvalidValue, "%s='%s': give a number from %lld to %lld", variable,
                             text, (long long)least, (long long)most);
    return cudaSuccess;
}

static cudaError_t wake_gpu(struct fake_gpu *gpu, int index) {
    *gpu = (struct fake_gpu){.index = index, .peers = UINT64_C(1) << index};
    snprintf(gpu->name, sizeof gpu->name, "GPU %d", index);
    if (async_fault_read("FAKECUDA_FAIL", "device=N,op=NAME,n=N", index, &gpu->fail) != CVY_OK ||
        async_fault_read("FAKECUDA_STALL", "device=N,op=NAME,n=N,seconds=X", index, &gpu->stall) != CVY_OK)
        return fake_complain_status(cudaErrorInvalidValue);
    return cudaSuccess;
}

static cudaError_t wake(void) {
    int64_t seed = 0, has_peers = 1, memory_bytes = INT64_C(16) << 30;
    cudaError_t code = read_number("FAKECUDA_SEED", 0, INT64_MAX, &seed);
    if (code == cudaSuccess)
        code = read_number("FAKECUDA_PEERS", 0, 1, &has_peers);
    if (code == cudaSuccess)
        code = read_number("FAKECUDA_MEMORY", 0, INT64_MAX, &memory_bytes);
    for (int i = 0; i < FAKE_MAX_GPUS && code == cudaSuccess; i++)
        code = wake_gpu(&fake.gpus[i], i);
    if (code != cudaSuccess)
        return code;
    const uint32_t epoch = fake.order.epoch; /* what threads remember of an earlier life must mean nothing */
    async_order_open(&fake.order, "the GPUs", FAKE_MAX_STREAMS);
    fake.order.epoch = epoch + 1;
    fake.picker = (struct async_picker){.favourite = 0};
    cvy_rng_init(&fake.picker.rng, (uint64_t)seed, CVY_RNG_TEST, 0, 1);
    fake.has_peers = has_peers != 0;
    fake.memory_bytes = (size_t)memory_bytes;
    fake.is_awake = true;
    return cudaSuccess;
}

static void sleep_if_bare(void) {
    bool is_bare = fake.blocks.n == 0 && fake.pinned.n == 0 && !fake.events;
    for (int s = 0; s < FAKE_MAX_STREAMS; s++)
        is_bare &= !fake.streams[s].is_alive;
    if (fake.is_awake && is_bare) {
        async_order_free(&fake.order);
        fake.is_awake = false;
    }
}

void fake_nap(void) {
    pthread_mutex_unlock(&lock);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    pthread_mutex_lock(&lock);
}

struct async_mark *fake_waited_for(void) {
    return &waited_for;
}

struct fake_gpu *fake_present(void) {
    return &fake.gpus[present];
}

cudaError_t fake_leave(cudaError_t code) {
    sleep_if_bare();
    pthread_mutex_unlock(&lock);
    return code;
}

cudaError_t fake_lock(void) {
    pthread_mutex_lock(&lock);
    return fake.is_awake ? cudaSuccess : wake();
}

cudaError_t fake_meet_failure(const char *name, struct fake_gpu *gpu) {
    cudaError_t code = fake_failure(gpu);
    const bool is_memory = strcmp(name, "cudaMalloc") == 0 || strcmp(name, "cudaHostAlloc") == 0;
    if (code == cudaSuccess && gpu->fail.op[0] &&
        async_fault_is_due(&gpu->fail, &(struct async_what){.op = name}))
        code = fake_complain(is_memory ? cudaErrorMemoryAllocation : cudaErrorUnknown,
                             "%s: %s fails, as FAKECUDA_FAIL orders", gpu->name, name);
    return code;
}

cudaError_t fake_enter(const char *name) {
    cudaError_t code = fake_lock();
    return code == cudaSuccess ? fake_meet_failure(name, fake_present()) : code;
}

bool fake_call_fails(const char *name) { return fake_leave(fake_enter(name)) != cudaSuccess; }

/* ---- devices ------------------------------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *n) {
    int64_t value = DEFAULT_GPUS;
    cudaError_t code = read_number("FAKECUDA_DEVICES", 0, FAKE_MAX_GPUS, &value);
    *n = (int)value;
    return code == cudaSuccess && value == 0 ? fake_complain(cudaErrorNoDevice, "there is no GPU") : code;
}

static cudaError_t check_device(int device) {
    int n;
    cudaError_t code = cudaGetDeviceCount(&n);
    if (code == cudaSuccess && (device < 0 || device >= n))
        code = fake_complain(cudaErrorInvalidDevice, "there is no GPU %d of %d", device, n);
    return code;
}

cudaError_t cudaSetDevice(int device) {
    cudaError_t code = check_device(device);
    if (code == cudaSuccess)
        present = device;
    return code;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "pretend GPU");
    p->major = 9;
    p->multiProcessorCount = 1;
    p->totalGlobalMem = (size_t)16 << 30;
    memcpy(p->uuid.bytes, &device, sizeof device);
    return check_device(device);
}

/* ---- peer access: between all, or with FAKECUDA_PEERS=0 between none -------------------------------------------- */

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    cudaError_t code = check_device(device);
    if (code == cudaSuccess)
        code = check_device(peer);
    if (code != cudaSuccess)
        return code;
    code = fake_lock();
    *can = device != peer && fake.has_peers;
    return fake_leave(code);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    (void)flags;
    cudaError_t code = check_device(peer);
    if (code != cudaSuccess)
        return code;
    code = fake_enter("cudaDeviceEnablePeerAccess");
    struct fake_gpu *me = fake_present();
    if (code == cudaSuccess && (me->index == peer || !fake.has_peers))
        code = fake_complain(cudaErrorInvalidDevice, "%s cannot reach GPU %d", me->name, peer);
    if (code == cudaSuccess && me->peers >> peer & 1)
        code = fake_complain(cudaErrorPeerAccessAlreadyEnabled, "%s reaches GPU %d already", me->name, peer);
    if (code == cudaSuccess)
        me->peers |= UINT64_C(1) << peer;
    return fake_leave(code);
}
