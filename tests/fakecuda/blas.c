/* cuBLASLt as far as the plugin calls it. */
#include "fakecuda.h"

#include <cublasLt.h>
#include <stdlib.h>

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out) {
    if (fake_call_fails("cublasLtCreate"))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    *out = malloc(1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusString(cublasStatus_t code) {
    return code == CUBLAS_STATUS_SUCCESS            ? "no error"
           : code == CUBLAS_STATUS_EXECUTION_FAILED ? fake_reason("an error of cuBLASLt")
                                                    : "an error of cuBLASLt";
}
