/* Copies between host and GPU, and sets. With pageable memory of the host, what goes to the GPU is taken from it at
   once, and what comes from the GPU is there when the call returns. With pinned memory, both happen when the stream
   gets there: whoever touches the memory before is found out. */
#include "gpu.h"

#include <string.h>

enum { RUBBISH = 0xA5 };

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

/* What is in pinned memory must still be there when the copy reads it. */
static bool is_unchanged(const void *payload) {
    const struct transfer *t = payload;
    return memcmp(t->from, t->bytes, t->n) == 0;
}

/* And what a copy is to write there is rubbish until then: nobody else may use the place. */
static bool is_rubbish(const void *payload) {
    const struct transfer *t = payload;
    const unsigned char *at = t->to;
    for (size_t i = 0; i < t->n; i++) {
        if (at[i] != RUBBISH)
            return false;
    }
    return true;
}

static void run_set(void *payload) {
    const struct transfer *t = payload;
    memset(t->to, t->value, t->n);
}

static cudaError_t check_kind(const struct CUstream_st *stream, const struct transfer *what,
                              enum cudaMemcpyKind kind) {
    const void *host = kind == cudaMemcpyHostToDevice ? what->from : what->to;
    if (kind == cudaMemcpyDeviceToDevice)
        return cudaSuccess;
    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToHost)
        return fake_complain(cudaErrorInvalidMemcpyDirection, "the stand-in lacks copies of kind %d",
                             (int)kind);
    if (!fake_is_host_memory(host, what->n))
        return fake_complain(cudaErrorInvalidValue, "%s: a copy takes a GPU's memory for the host's",
                             stream->name);
    return cudaSuccess;
}

/* CUDA would capture it, and read or write the host's memory at each launch, whatever is there by then. */
static cudaError_t refuse_in_capture(struct CUstream_st *stream) {
    return fake_refuse_in_capture("a copy of the host's memory", stream);
}

static cudaError_t upload(cudaStream_t stream, const struct transfer *what) {
    const struct cuda_range range = {what->to, what->n, true};
    void *payload;
    cudaError_t code = refuse_in_capture(stream);
    if (code == cudaSuccess)
        code = fake_push(stream, "upload", &range, 1, run_upload, sizeof *what + what->n, &payload);
    if (code != cudaSuccess)
        return code;
    struct transfer *t = payload;
    *t = *what;
    if (what->n > 0)
        memcpy(t->bytes, what->from, what->n);
    if (fake_is_pinned(what->from, what->n))
        fake_newest(stream)->is_intact = is_unchanged;
    return cudaSuccess;
}

static cudaError_t download(cudaStream_t stream, const struct transfer *what) {
    const struct cuda_range range = {what->from, what->n, false};
    void *payload;
    cudaError_t code = refuse_in_capture(stream);
    if (code == cudaSuccess)
        code = fake_push(stream, "download", &range, 1, run_copy, sizeof *what, &payload);
    if (code != cudaSuccess)
        return code;
    *(struct transfer *)payload = *what;
    if (!fake_is_pinned(what->to, what->n))
        return fake_work_until_over(stream->gpu, stream);
    memset(what->to, RUBBISH, what->n);
    fake_newest(stream)->is_intact = is_rubbish;
    return cudaSuccess;
}

static cudaError_t copy(cudaStream_t stream, const struct transfer *what) {
    const struct cuda_range ranges[] = {{what->from, what->n, false}, {what->to, what->n, true}};
    void *payload;
    cudaError_t code = fake_push(stream, "copy", ranges, 2, run_copy, sizeof *what, &payload);
    if (code == cudaSuccess)
        *(struct transfer *)payload = *what;
    return code;
}

static cudaError_t enqueue(cudaStream_t stream, const struct transfer *what, enum cudaMemcpyKind kind) {
    cudaError_t code = check_kind(stream, what, kind);
    if (code != cudaSuccess)
        return code;
    return kind == cudaMemcpyHostToDevice   ? upload(stream, what)
           : kind == cudaMemcpyDeviceToHost ? download(stream, what)
                                            : copy(stream, what);
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
