/* What the machine has of what the plugin needs, and what it says about its GPUs. */
#include "cuda.h"

#include <nccl.h>

/* ---- can GPUs be used here? --------------------------------------------------------------------------- */

struct version {
    int major, minor;
};

/* As CUDA and the headers count: 13010 is 13.1. */
static struct version cuda_version(int number) { return (struct version){number / 1000, number % 1000 / 10}; }

/* From version 9 on 91900 is 9.19.0; before that 8907 was 8.9.7. */
static struct version cudnn_version(size_t number) {
    int n = (int)number;
    return n >= 10000 ? (struct version){n / 10000, n / 100 % 100} : (struct version){n / 1000, n / 100 % 10};
}

/* 22803 is 2.28.3. */
static struct version nccl_version(void) {
    int n = 0;
    (void)ncclGetVersion(&n);
    return (struct version){n / 10000, n / 100 % 100};
}

static cvy_status check_driver(void) {
    int number = 0;
    const struct version built = cuda_version(CUDART_VERSION);
    if (cudaDriverGetVersion(&number) != cudaSuccess || number == 0)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED,
                        "no NVIDIA driver is loaded: GPUs want one for CUDA %d (see `nvidia-smi`)",
                        built.major);
    const struct version driver = cuda_version(number);
    if (driver.major < built.major)
        return CVY_FAIL(
            CVY_ERR_UNSUPPORTED,
            "the NVIDIA driver is too old: it knows CUDA %d.%d, Convoy was built with CUDA %d.%d; install a "
            "newer driver, or build Convoy with CUDA %d",
            driver.major, driver.minor, built.major, built.minor, driver.major);
    return CVY_OK;
}

/* The same headline version as the headers': what was compiled calls nothing that a smaller number lacks. */
static cvy_status check_libraries(void) {
    const struct version dnn = cudnn_version(cudnnGetVersion());
    if (dnn.major != CUDNN_MAJOR)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "cuDNN %d.%d does not fit: install cuDNN %d", dnn.major,
                        dnn.minor, CUDNN_MAJOR);
    const struct version for_cuda = cuda_version((int)cudnnGetCudartVersion());
    if (for_cuda.major != CUDART_VERSION / 1000)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED,
                        "cuDNN %d.%d does not fit: it is for CUDA %d; install cuDNN %d for CUDA %d",
                        dnn.major, dnn.minor, for_cuda.major, CUDNN_MAJOR, CUDART_VERSION / 1000);
    int blas = (int)(cublasLtGetVersion() / 10000);
    if (blas != CUBLAS_VER_MAJOR)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "cuBLAS %d does not fit: install cuBLAS %d", blas,
                        CUBLAS_VER_MAJOR);
    const struct version nccl = nccl_version();
    if (nccl.major != NCCL_MAJOR)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "NCCL %d.%d does not fit: install NCCL %d", nccl.major,
                        nccl.minor, NCCL_MAJOR);
    return CVY_OK;
}

cvy_status cuda_available(void) {
    int n = 0;
    CVY_TRY(check_driver());
    cudaError_t code = cudaGetDeviceCount(&n);
    if (code == cudaErrorNoDevice || (code == cudaSuccess && n == 0))
        return CVY_FAIL(
            CVY_ERR_UNSUPPORTED,
            "there is no NVIDIA GPU: see `nvidia-smi`, and whether CUDA_VISIBLE_DEVICES hides it");
    if (code != cudaSuccess)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "GPUs cannot be used: %s (see `nvidia-smi`)",
                        cudaGetErrorString(code));
    return check_libraries();
}

void cuda_kind(struct cvy_text *out) {
    struct cudaDeviceProp p;
    const struct version dnn = cudnn_version(cudnnGetVersion());
    cvy_text_printf(out, "cuDNN %d.%d.%d", dnn.major, dnn.minor, (int)(cudnnGetVersion() % 100));
    if (cudaGetDeviceProperties(&p, 0) == cudaSuccess)
        cvy_text_printf(out, ", compute capability %d.%d", p.major, p.minor);
}

/* ---- what they are -------------------------------------------------------------------------------------- */

void cuda_describe(const struct cvy_device *device, struct cvy_text *out) {
    const struct cuda_device *me = (const struct cuda_device *)device;
    struct cudaDeviceProp p;
    if (cudaGetDeviceProperties(&p, me->gpu) != cudaSuccess) {
        cvy_text_printf(out, "%s: its properties cannot be read", device->name);
        return;
    }
    cvy_text_printf(out, "%s: %s, compute capability %d.%d, %d multiprocessors, %.1f GB", device->name,
                    p.name, p.major, p.minor, p.multiProcessorCount, (double)p.totalGlobalMem / 1e9);
}

static void describe_memory(struct cvy_text *out) {
    size_t n_free, total;
    if (cudaMemGetInfo(&n_free, &total) == cudaSuccess)
        cvy_text_printf(out, "memory: %.1f GB, %.1f GB of it free\n", (double)total / 1e9,
                        (double)n_free / 1e9);
}

/* Which of the other GPUs it can read and write without the host. */
static void describe_peers(const struct cuda_device *me, struct cvy_text *out) {
    int n = 0, n_reached = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess)
        return;
    cvy_text_printf(out, "reaches:");
    for (int peer = 0; peer < n; peer++) {
        int can = 0;
        if (peer != me->gpu && cudaDeviceCanAccessPeer(&can, me->gpu, peer) == cudaSuccess && can)
            cvy_text_printf(out, "%s cuda:%d", n_reached++ ? "," : "", peer);
    }
    cvy_text_printf(out, "%s\n",
                    n_reached ? ""
                    : n > 1   ? " no other GPU, so through the host"
                              : " it is alone");
}

void cuda_describe_more(const struct cvy_device *device, struct cvy_text *out) {
    const struct cuda_device *me = (const struct cuda_device *)device;
    int driver_number = 0, runtime_number = 0;
    if (cudaSetDevice(me->gpu) != cudaSuccess)
        return;
    describe_memory(out);
    describe_peers(me, out);
    (void)cudaDriverGetVersion(&driver_number);
    (void)cudaRuntimeGetVersion(&runtime_number);
    const struct version driver = cuda_version(driver_number), runtime = cuda_version(runtime_number);
    const struct version dnn = cudnn_version(cudnnGetVersion());
    int blas = (int)cublasLtGetVersion();
    cvy_text_printf(out, "driver: for CUDA %d.%d\n", driver.major, driver.minor);
    cvy_text_printf(out, "CUDA: %d.%d\n", runtime.major, runtime.minor);
    cvy_text_printf(out, "cuDNN: %d.%d.%d\n", dnn.major, dnn.minor, (int)(cudnnGetVersion() % 100));
    const struct version nccl = nccl_version();
    cvy_text_printf(out, "NCCL: %d.%d\n", nccl.major, nccl.minor);
    cvy_text_printf(out, "cuBLASLt: %d.%d.%d\n", blas / 10000, blas / 100 % 100, blas % 100);
}
