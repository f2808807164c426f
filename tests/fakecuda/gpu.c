/* The pretend GPUs: how many, which one a thread means, how their lives begin and end, and what is said of failures. */
#include "gpu.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_GPUS = 64, DEFAULT_GPUS = 8 };

static struct fake_gpu gpus[MAX_GPUS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local int present;
static _Thread_local struct {
    cudaError_t code;
    char reason[400];
} newest;

/* ---- what is said ------------------------------------------------------------------------------------------------------ */

cudaError_t fake_complain(cudaError_t code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(newest.reason, sizeof newest.reason, format, list);
    va_end(list);
    newest.code = code;
    return code;
}

cudaError_t fake_complain_status(cudaError_t code) { return fake_complain(code, "%s", cvy_error()); }

cudaError_t fake_break(struct fake_gpu *gpu, cudaError_t code) {
    gpu->failure = code;
    snprintf(gpu->reason, sizeof gpu->reason, "%s", newest.reason);
    fake_forget_all(gpu);
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

/* ---- a GPU's life ------------------------------------------------------------------------------------------------------ */

static void make_gpus(void) {
    for (int i = 0; i < MAX_GPUS; i++) {
        pthread_mutex_init(&gpus[i].lock, NULL);
        gpus[i].index = i;
        snprintf(gpus[i].name, sizeof gpus[i].name, "GPU %d", i);
        for (int s = 0; s < ASYNC_ORDER_STREAMS; s++) {
            gpus[i].streams[s].gpu = &gpus[i];
            gpus[i].streams[s].number = s;
        }
    }
}

/* A number from `least` to `most`, `value` when it is not set. */
static cudaError_t read_number(const char *variable, int64_t least, int64_t most, int64_t *value) {
    const char *text = getenv(variable);
    if (!text || !*text)
        return cudaSuccess;
    if (!cvy_parse_i64(text, value) || *value < least || *value > most)
        return fake_complain(cudaErrorInvalidValue, "%s='%s': give a number from %lld to %lld", variable,
                             text, (long long)least, (long long)most);
    return cudaSuccess;
}

static cudaError_t wake(struct fake_gpu *gpu) {
    int64_t seed = 0;
    cudaError_t code = read_number("FAKECUDA_SEED", 0, INT64_MAX, &seed);
    if (code != cudaSuccess)
        return code;
    if (async_fault_read("FAKECUDA_FAIL", "device=N,op=NAME,n=N", gpu->index, &gpu->fail) != CVY_OK ||
        async_fault_read("FAKECUDA_STALL", "device=N,op=NAME,n=N,seconds=X", gpu->index, &gpu->stall) !=
            CVY_OK)
        return fake_complain_status(cudaErrorInvalidValue);
    async_order_open(&gpu->order, gpu->name, 0);
    gpu->picker = (struct async_picker){.favourite = 0};
    cvy_rng_init(&gpu->picker.rng, (uint64_t)seed, CVY_RNG_TEST, (uint64_t)gpu->index, 1);
    gpu->failure = cudaSuccess;
    gpu->is_awake = true;
    return cudaSuccess;
}

static void sleep_if_bare(struct fake_gpu *gpu) {
    bool is_bare = gpu->order.arenas.n == 0 && !gpu->events;
    for (int s = 0; s < ASYNC_ORDER_STREAMS; s++)
        is_bare &= !gpu->streams[s].is_alive;
    if (gpu->is_awake && is_bare) {
        async_order_free(&gpu->order);
        gpu->is_awake = false;
    }
}

void fake_sleep_a_little(struct fake_gpu *gpu) {
    pthread_mutex_unlock(&gpu->lock);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    pthread_mutex_lock(&gpu->lock);
}

cudaError_t fake_leave(struct fake_gpu *gpu, cudaError_t code) {
    sleep_if_bare(gpu);
    pthread_mutex_unlock(&gpu->lock);
    return code;
}

/* Due faults of calls; every failure that is there already. */
static cudaError_t meet_failure(struct fake_gpu *gpu, const char *name) {
    if (gpu->failure != cudaSuccess)
        return fake_complain(gpu->failure, "%s", gpu->reason);
    if (gpu->fail.op[0] && async_fault_is_due(&gpu->fail, &(struct async_what){.op = name}))
        return fake_complain(strcmp(name, "cudaMalloc") == 0 ? cudaErrorMemoryAllocation : cudaErrorUnknown,
                             "%s: %s fails, as FAKECUDA_FAIL orders", gpu->name, name);
    return cudaSuccess;
}

cudaError_t fake_enter_anyway(const char *name, struct fake_gpu **out) {
    pthread_once(&once, make_gpus);
    struct fake_gpu *gpu = *out = &gpus[present];
    pthread_mutex_lock(&gpu->lock);
    cudaError_t code = gpu->is_awake ? cudaSuccess : wake(gpu);
    return code == cudaSuccess ? meet_failure(gpu, name) : code;
}

cudaError_t fake_enter(const char *name, struct fake_gpu **out) {
    cudaError_t code = fake_enter_anyway(name, out);
    return code == cudaSuccess ? code : fake_leave(*out, code);
}

bool fake_call_fails(const char *name) {
    struct fake_gpu *gpu;
    if (fake_enter(name, &gpu) != cudaSuccess)
        return true;
    (void)fake_leave(gpu, cudaSuccess);
    return false;
}

/* ---- the calls --------------------------------------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *n) {
    int64_t value = DEFAULT_GPUS;
    cudaError_t code = read_number("FAKECUDA_DEVICES", 1, MAX_GPUS, &value);
    *n = (int)value;
    return code;
}

cudaError_t cudaSetDevice(int device) {
    int n;
    cudaError_t code = cudaGetDeviceCount(&n);
    if (code != cudaSuccess)
        return code;
    if (device < 0 || device >= n)
        return fake_complain(cudaErrorInvalidDevice, "there is no GPU %d of %d", device, n);
    present = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    (void)device;
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "pretend GPU");
    p->major = 9;
    p->multiProcessorCount = 1;
    p->totalGlobalMem = (size_t)16 << 30;
    return cudaSuccess;
}
