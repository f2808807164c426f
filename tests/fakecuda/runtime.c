/* The CUDA runtime as far as the plugin calls it, on the host: devices that are not there. */
#include "fakecuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_DEVICES = 8 };

cudaError_t cudaGetDeviceCount(int *n) {
    *n = N_DEVICES;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    return device >= 0 && device < N_DEVICES ? cudaSuccess : cudaErrorInvalidDevice;
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

const char *cudaGetErrorString(cudaError_t code) { return code == cudaSuccess ? "no error" : "an error"; }

cudaError_t cudaMalloc(void **out, size_t n_bytes) {
    *out = aligned_alloc(256, (n_bytes + 255) / 256 * 256);
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *memory) {
    free(memory);
    return cudaSuccess;
}

cudaError_t fake_enqueue(cudaStream_t stream, const char *name, const struct cuda_range *ranges, int n_ranges,
                         void (*run)(void *payload), const void *payload, size_t payload_bytes) {
    (void)stream, (void)name, (void)ranges, (void)n_ranges;
    void *copy = malloc(payload_bytes + !payload_bytes);
    if (!copy)
        return cudaErrorMemoryAllocation;
    memcpy(copy, payload, payload_bytes);
    run(copy);
    free(copy);
    return cudaSuccess;
}

struct transfer {
    void *to;
    const void *from;
    size_t n;
    int value;
};

static void run_copy(void *payload) {
    const struct transfer *t = payload;
    memcpy(t->to, t->from, t->n);
}

static void run_set(void *payload) {
    const struct transfer *t = payload;
    memset(t->to, t->value, t->n);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    const struct transfer t = {.to = to, .from = from, .n = n};
    const struct cuda_range ranges[] = {{from, n, false}, {to, n, true}};
    bool is_from_host = kind == cudaMemcpyHostToDevice, is_to_host = kind == cudaMemcpyDeviceToHost;
    return fake_enqueue(stream, "copy", ranges + is_from_host, 2 - is_from_host - is_to_host, run_copy, &t,
                        sizeof t);
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t n, cudaStream_t stream) {
    const struct transfer t = {.to = at, .n = n, .value = value};
    const struct cuda_range range = {at, n, true};
    return fake_enqueue(stream, "set", &range, 1, run_set, &t, sizeof t);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
    (void)flags;
    *out = malloc(1);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    (void)stream;
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    (void)stream;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
    (void)flags;
    *out = malloc(1);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    (void)event, (void)stream;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    (void)stream, (void)event, (void)flags;
    return cudaSuccess;
}
