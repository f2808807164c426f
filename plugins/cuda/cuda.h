/* What the files of the CUDA plugin share. The plugin is a backend (rt/backend.h) in a library of its own: it calls the
   CUDA runtime, cuDNN and cuBLASLt, and launches its own functions through one table (launch.h). It is C: only
   launch_device.cu is compiled by nvcc. Tests link the same files with a stand-in for CUDA (tests/fakecuda). */
#ifndef CONVOY_CUDA_H
#define CONVOY_CUDA_H

#include "pinned.h"
#include "rt/backend.h"
#include "rt/program.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

enum { CUDA_MAX_ARENAS = 64 };
/* Behind the program's streams one of the device's own, in which images come from the host. */
enum { CUDA_STREAM_COPY = CVY_N_STREAMS, CUDA_N_STREAMS };
enum { CUDA_N_INPUTS = 2 }; /* one is filled while the other is read */

struct cuda_input {       /* the images of a shard, as the loader gives them */
    cudaEvent_t is_there; /* in the copy stream */
    cudaEvent_t is_read;  /* by the launch that converts them */
};

/* An arena, and memory of the host of the same size that what the host must see passes through. */
struct cuda_arena {
    char *memory, *shadow;
    size_t n_bytes;
};

enum { CUDA_MAX_GRAPHS = 256 }; /* further stretches are enqueued call by call */

struct cuda_graph { /* of the calls that a key stands for; NULL: they came once, and are not captured yet */
    uint64_t key;
    cudaGraphExec_t graph;
};

/* A stream of a network, in which sends wait for their receives beside the device's streams. */
struct cuda_posted {
    cudaStream_t stream; /* NULL: nothing was posted */
    struct cuda_posted *next;
};

struct cuda_device {
    struct cvy_device base;
    int gpu; /* CUDA's number */
    cudaStream_t streams[CUDA_N_STREAMS];
    struct cuda_ring rings[CUDA_N_STREAMS];
    struct cuda_posted *posted; /* whatever waits for the device waits for these too */
    cudaEvent_t events[CVY_N_EVENTS];
    uint64_t is_recorded; /* bit e: event e, since the newest synchronize */
    int stream;           /* that calls go into now */
    bool
        is_lost; /* it did not end in time: whatever waits for it would not end either, so it is left as it is */
    double lost_after_s;
    struct cuda_arena arenas[CUDA_MAX_ARENAS];
    int n_arenas;
    void *images;       /* of all inputs, one behind the other */
    size_t image_bytes; /* of each */
    struct cuda_input inputs[CUDA_N_INPUTS];
    uint64_t n_ingested;
    cudnnHandle_t cudnn;
    cublasLtHandle_t cublas;
    struct cuda_graph graphs[CUDA_MAX_GRAPHS];
    int n_graphs;
    bool has_no_graphs;    /* a capture failed: it goes on without */
    bool has_own_products; /* some of its products are sums of our own (operators/own_products.c) */
};

static inline struct cuda_device *cuda_device(struct cvy_device *device) {
    return (struct cuda_device *)device;
}

static inline cudaStream_t cuda_stream(const struct cuda_device *me) { return me->streams[me->stream]; }

/* A call of the runtime, of cuDNN or of cuBLASLt that failed, as an error that names the device and what was tried. */
cvy_status cuda_failed(const char *device, cudaError_t code, const char *what);
cvy_status cuda_failed_dnn(const char *device, cudnnStatus_t code, const char *what);
cvy_status cuda_failed_blas(const char *device, cublasStatus_t code, const char *what);

#define TRY_CUDA(me, call)                                     \
    do {                                                       \
        cudaError_t code_ = (call);                            \
        if (code_ != cudaSuccess)                              \
            return cuda_failed((me)->base.name, code_, #call); \
    } while (0)
#define TRY_DNN(me, call)                                          \
    do {                                                           \
        cudnnStatus_t code_ = (call);                              \
        if (code_ != CUDNN_STATUS_SUCCESS)                         \
            return cuda_failed_dnn((me)->base.name, code_, #call); \
    } while (0)
#define TRY_BLAS(me, call)                                          \
    do {                                                            \
        cublasStatus_t code_ = (call);                              \
        if (code_ != CUBLAS_STATUS_SUCCESS)                         \
            return cuda_failed_blas((me)->base.name, code_, #call); \
    } while (0)

struct cuda_launch;
/* operator.c: launches a function of the plugin's own (launch.h) in the present stream. */
cvy_status cuda_launch(struct cuda_device *me, const struct cuda_launch *launch);

/* memory.c */
cvy_status cuda_alloc(struct cvy_device *device, size_t n_bytes, void **out, double *touch_s);
void cuda_release(struct cvy_device *device, void *memory, size_t n_bytes);
cvy_status cuda_upload(struct cvy_device *device, void *to, const void *host, size_t n_bytes);
cvy_status cuda_download(struct cvy_device *device, void *host, const void *from, size_t n_bytes);
cvy_status cuda_zero(struct cvy_device *device, void *at, size_t n_bytes);
cvy_status cuda_add(struct cvy_device *device, float *sum, const float *a, const float *b, size_t n);
cvy_status cuda_not_finite(struct cvy_device *device, const float *at, size_t n, float *flag);
/* The place in host memory that stands for `at`, which lies in an arena. */
void *cuda_shadow_of(const struct cuda_device *me, const void *at);

/* machine.c */
cvy_status cuda_available(void);
void cuda_kind(struct cvy_text *out);
void cuda_describe(const struct cvy_device *device, struct cvy_text *out);
void cuda_describe_more(const struct cvy_device *device, struct cvy_text *out);

/* ingest.c */
void cuda_inputs_close(struct cuda_device *me);
cvy_status cuda_ingest(struct cvy_device *device, const struct cvy_ingest *what,
                       const struct cvy_operand_spec *to_spec, void *to);
size_t cuda_input_bytes(const struct cvy_desc *images);

/* peers.c, nccl.c */
extern const struct cvy_peers cuda_peers;
extern const struct cvy_net cuda_net;

/* graphs.c: of struct cvy_streams */
cvy_status cuda_repeat(struct cvy_device *device, uint64_t key, cvy_status (*run)(const void *argument),
                       const void *argument);
void cuda_forget(struct cvy_device *device);

/* streams.c */
extern const struct cvy_streams cuda_streams;
cvy_status cuda_streams_open(struct cuda_device *me);
void cuda_streams_close(struct cuda_device *me);
/* Waits for the stream, for the device's timeout_s at most: then the device is lost. */
cvy_status cuda_wait(struct cuda_device *me, cudaStream_t stream);
cvy_status cuda_wait_event(struct cuda_device *me, cudaEvent_t event);
cvy_status cuda_wait_all(struct cuda_device *me);
/* The same for all streams, whatever comes of it. False: the device is lost. */
bool cuda_settle(struct cuda_device *me);
/* What has failed of all that was enqueued; waits for nothing. */
cvy_status cuda_check(struct cuda_device *me);

#endif
