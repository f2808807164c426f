/* The CUDA backend: opening a device, and the table. */
#include "cuda.h"
#include "kernels.h"
#include "layout.h"

#include "base/mem.h"
#include "rt/backend_plugin.h"

#include <stdio.h>
#include <stdlib.h>

extern const struct cvy_backend cuda_backend;

/* ---- errors ---------------------------------------------------------------------------------------------- */

static cvy_status failed(const char *device, bool is_memory, const char *library, const char *reason,
                         const char *what) {
    if (is_memory)
        return CVY_FAIL(CVY_ERR_MEMORY, "%s: out of memory; use a smaller batch or more shards", device);
    return CVY_FAIL(CVY_ERR_FAILED, "%s: %s: %s (%s)", device, library, reason, what);
}

cvy_status cuda_failed(const char *device, cudaError_t code, const char *what) {
    return failed(device, code == cudaErrorMemoryAllocation, "CUDA", cudaGetErrorString(code), what);
}

cvy_status cuda_failed_dnn(const char *device, cudnnStatus_t code, const char *what) {
    return failed(device, code == CUDNN_STATUS_ALLOC_FAILED, "cuDNN", cudnnGetErrorString(code), what);
}

cvy_status cuda_failed_blas(const char *device, cublasStatus_t code, const char *what) {
    return failed(device, code == CUBLAS_STATUS_ALLOC_FAILED, "cuBLAS", cublasLtGetStatusString(code), what);
}

/* ---- opening --------------------------------------------------------------------------------------------- */

static int count(void) {
    int n = 0;
    return cudaGetDeviceCount(&n) == cudaSuccess ? n : 0;
}

static void close_device(struct cvy_device *device) {
    struct cuda_device *me = cuda_device(device);
    if (!me)
        return;
    (void)cudaSetDevice(me->gpu);
    while (me->n_arenas > 0)
        cuda_release(device, me->arenas[0].memory, me->arenas[0].n_bytes);
    if (!cuda_settle(me)) {
        free(me);
        return;
    }
    cuda_forget(device);
    cuda_inputs_close(me);
    if (me->cudnn)
        (void)cudnnDestroy(me->cudnn);
    if (me->cublas)
        (void)cublasLtDestroy(me->cublas);
    cuda_streams_close(me);
    free(me);
}

static cvy_status open_libraries(struct cuda_device *me) {
    TRY_CUDA(me, cudaSetDevice(me->gpu));
    CVY_TRY(cuda_streams_open(me));
    TRY_DNN(me, cudnnCreate(&me->cudnn));
    TRY_BLAS(me, cublasLtCreate(&me->cublas));
    return CVY_OK;
}

static cvy_status open_device(const struct cvy_device_spec *spec, struct cvy_device **out) {
    struct cuda_device *me;
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.backend = &cuda_backend;
    me->base.spec = *spec;
    me->base.spec.n_threads = 1;
    me->gpu = spec->index;
    snprintf(me->base.name, sizeof me->base.name, spec->part ? "cuda:%d/%d" : "cuda:%d", spec->index,
             spec->part);
    cvy_status status = open_libraries(me);
    if (status != CVY_OK) {
        close_device(&me->base);
        return status;
    }
    *out = &me->base;
    return CVY_OK;
}

static cvy_status enter(struct cvy_device *device) {
    struct cuda_device *me = cuda_device(device);
    TRY_CUDA(me, cudaSetDevice(me->gpu));
    return CVY_OK;
}

/* ---- the table ------------------------------------------------------------------------------------------- */

static const struct cvy_kernel_impl *const kernels[] = {
#define CUDA_KERNEL(name) &cuda_kernel_##name,
#include "kernels.def"
#undef CUDA_KERNEL
    NULL,
};

static const char *amp_refusal(cvy_dtype low) {
    (void)low;
    return NULL;
}

const struct cvy_backend cuda_backend = {
    .name = "cuda",
    .help = "NVIDIA GPUs, by cuDNN and cuBLASLt",
    .is_host_memory = false,
    .has_parts = true,
    .amp_refusal = amp_refusal,
    .available = cuda_available,
    .count = count,
    .open = open_device,
    .close = close_device,
    .enter = enter,
    .kind = cuda_kind,
    .describe = cuda_describe,
    .describe_more = cuda_describe_more,
    .alloc = cuda_alloc,
    .release = cuda_release,
    .upload = cuda_upload,
    .download = cuda_download,
    .zero = cuda_zero,
    .add = cuda_add,
    .not_finite = cuda_not_finite,
    .ingest = cuda_ingest,
    .input_bytes = cuda_input_bytes,
    .layout_bytes = cuda_layout_bytes,
    .layout_print = cuda_layout_print,
    .layout_find = cuda_layout_find,
    .kernels = kernels,
    .streams = &cuda_streams,
    .peers = &cuda_peers,
    .net = &cuda_net,
};

extern const struct cvy_backend_plugin cvy_backend_plugin;
__attribute__((visibility("default"))) const struct cvy_backend_plugin cvy_backend_plugin = {
    .abi_bytes = sizeof(struct cvy_backend_plugin),
    .abi = CVY_BACKEND_ABI,
    .backend = &cuda_backend,
    .share_errors = cvy_error_share,
};
