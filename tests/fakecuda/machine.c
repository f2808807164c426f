/* What the pretend machine has: versions. FAKECUDA_DRIVER, FAKECUDA_CUDNN and FAKECUDA_NCCL are versions in
   place of those that the plugin was built with, as cudaDriverGetVersion, cudnnGetVersion and ncclGetVersion count
   them; driver 0: there is none. */
#include "fakecuda.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <nccl.h>
#include <stdlib.h>

static int number_of(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    return text ? atoi(text) : otherwise;
}

bool fake_has_products(void) { return number_of("FAKECUDA_PRODUCTS", 1) != 0; }

cudaError_t cudaDriverGetVersion(int *version) {
    *version = number_of("FAKECUDA_DRIVER", CUDART_VERSION);
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

size_t cudnnGetVersion(void) { return (size_t)number_of("FAKECUDA_CUDNN", CUDNN_VERSION); }
size_t cudnnGetCudartVersion(void) { return CUDART_VERSION; }
size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }

ncclResult_t ncclGetVersion(int *version) {
    *version = number_of("FAKECUDA_NCCL", NCCL_VERSION_CODE);
    return ncclSuccess;
}
