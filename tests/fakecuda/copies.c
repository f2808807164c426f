/* Copies between host and GPU, and sets. All host memory is pageable: what goes to the GPU is taken from it at once, and
   what comes from the GPU is there when the call returns. */
#include "gpu.h"

#include <string.h>

struct transfer {
    void *to;
    const void *from;
    size_t n;
    int value;
    unsigned char bytes[]; /* from the host */
};

static void run_copy(void *payload) {
    const struct transfer *t = payload;
    memcpy(t->to, t->from, t->n);
}

static void run_upload(void *payload) {
    const struct transfer *t = payload;
    memcpy(t->to, t->bytes, t->n);
}

static void run_set(void *payload) {
    const struct transfer *t = payload;
    memset(t->to, t->value, t->n);
}

static cudaError_t enqueue(struct fake_gpu *gpu, cudaStream_t stream, const struct transfer *what,
                           enum cudaMemcpyKind kind) {
    const struct cuda_range ranges[] = {{what->from, what->n, false}, {what->to, what->n, true}};
    const bool is_upload = kind == cudaMemcpyHostToDevice, is_download = kind == cudaMemcpyDeviceToHost;
    const void *host = is_upload ? what->from : what->to;
    struct transfer *t;
    if (!is_upload && !is_download && kind != cudaMemcpyDeviceToDevice)
        return fake_complain(cudaErrorInvalidMemcpyDirection, "%s: the stand-in lacks copies of kind %d",
                             gpu->name, (int)kind);
    if ((is_upload || is_download) && !fake_memory_is_host(host, what->n))
        return fake_complain(cudaErrorInvalidValue, "%s: a copy takes a GPU's memory for the host's",
                             gpu->name);
    cudaError_t code =
        fake_push(gpu, stream,
                  is_upload     ? "upload"
                  : is_download ? "download"
                                : "copy",
                  ranges + is_upload, 2 - is_upload - is_download, is_upload ? run_upload : run_copy,
                  sizeof *t + (is_upload ? what->n : 0), (void **)&t);
    if (code != cudaSuccess)
        return code;
    *t = *what;
    if (is_upload)
        memcpy(t->bytes, what->from, what->n);
    if (is_download) {
        code = fake_work_until_over(gpu, stream);
        if (code == cudaSuccess)
            fake_host_has_waited(gpu, stream);
    }
    return code;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    struct fake_gpu *gpu;
    cudaError_t code = fake_enter("cudaMemcpyAsync", &gpu);
    if (code != cudaSuccess)
        return code;
    code = cudaErrorInvalidResourceHandle;
    if (fake_stream_of(gpu, stream))
        code = enqueue(gpu, stream, &(struct transfer){.to = to, .from = from, .n = n}, kind);
    return fake_leave(gpu, code);
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t n, cudaStream_t stream) {
    struct fake_gpu *gpu;
    const struct cuda_range range = {at, n, true};
    struct transfer *t;
    cudaError_t code = fake_enter("cudaMemsetAsync", &gpu);
    if (code != cudaSuccess)
        return code;
    if (!fake_stream_of(gpu, stream))
        return fake_leave(gpu, cudaErrorInvalidResourceHandle);
    code = fake_push(gpu, stream, "set", &range, 1, run_set, sizeof *t, (void **)&t);
    if (code == cudaSuccess)
        *t = (struct transfer){.to = at, .n = n, .value = value};
    return fake_leave(gpu, code);
}
