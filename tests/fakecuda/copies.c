/* Copies between host and GPU, and sets. All host memory is pageable: what goes to the GPU is taken from it at once,
   and what comes from the GPU is there when the call returns. */
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

static cudaError_t enqueue(cudaStream_t stream, const struct transfer *what, enum cudaMemcpyKind kind) {
    const struct cuda_range ranges[] = {{what->from, what->n, false}, {what->to, what->n, true}};
    const bool is_upload = kind == cudaMemcpyHostToDevice, is_download = kind == cudaMemcpyDeviceToHost;
    const void *host = is_upload ? what->from : what->to;
    void *payload;
    if (!is_upload && !is_download && kind != cudaMemcpyDeviceToDevice)
        return fake_complain(cudaErrorInvalidMemcpyDirection, "the stand-in lacks copies of kind %d",
                             (int)kind);
    if ((is_upload || is_download) && !fake_is_host_memory(host, what->n))
        return fake_complain(cudaErrorInvalidValue, "%s: a copy takes a GPU's memory for the host's",
                             stream->name);
    cudaError_t code =
        fake_push(stream,
                  is_upload     ? "upload"
                  : is_download ? "download"
                                : "copy",
                  ranges + is_upload, 2 - is_upload - is_download, is_upload ? run_upload : run_copy,
                  sizeof *what + (is_upload ? what->n : 0), &payload);
    if (code != cudaSuccess)
        return code;
    struct transfer *t = payload;
    *t = *what;
    if (is_upload && what->n > 0)
        memcpy(t->bytes, what->from, what->n);
    return is_download ? fake_work_until_over(stream->gpu, stream) : cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    const struct transfer what = {.to = to, .from = from, .n = n};
    cudaError_t code = fake_enter_stream("cudaMemcpyAsync", stream);
    if (code == cudaSuccess)
        code = enqueue(stream, &what, kind);
    return fake_leave(code);
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t n, cudaStream_t stream) {
    const struct transfer what = {.to = at, .n = n, .value = value};
    const struct cuda_range range = {at, n, true};
    void *payload;
    cudaError_t code = fake_enter_stream("cudaMemsetAsync", stream);
    if (code == cudaSuccess)
        code = fake_push(stream, "set", &range, 1, run_set, sizeof what, &payload);
    if (code == cudaSuccess)
        *(struct transfer *)payload = what;
    return fake_leave(code);
}
