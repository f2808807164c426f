/* What cuDNN's descriptors are in the stand-in: plain structs. It knows NHWC alone, of float32, bfloat16 and float16.
   */
#ifndef FAKEDNN_H
#define FAKEDNN_H

#include "fakecuda.h"

#include <cudnn.h>

struct cudnnContext {
    cudaStream_t stream;
};

struct cudnnTensorStruct {
    int64_t dim[4]; /* N,C,H,W */
    cudnnDataType_t type;
};

struct cudnnFilterStruct {
    int64_t dim[4]; /* O,I,H,W */
    cudnnDataType_t type;
};

struct cudnnConvolutionStruct {
    int64_t padding[2], stride[2], dilation[2], groups;
};

struct cudnnActivationStruct {
    cudnnActivationMode_t mode;
};

static inline int64_t fake_count(const int64_t dim[4]) { return dim[0] * dim[1] * dim[2] * dim[3]; }
static inline size_t fake_tensor_bytes(const int64_t dim[4], cudnnDataType_t type) {
    return (size_t)fake_count(dim) * (type == CUDNN_DATA_FLOAT ? sizeof(float) : sizeof(uint16_t));
}

/* A tensor's values as float32, in memory of the host, and back. The caller frees it; NULL: no memory. */
float *fake_widen(const void *values, cudnnDataType_t type, int64_t n);
void fake_narrow(void *to, cudnnDataType_t type, const float *values, int64_t n);

/* Outputs are alpha * result + beta * what was there: known for 1 and 0. */
static inline bool fake_is_plain(const void *alpha, const void *beta) {
    return *(const float *)alpha == 1 && *(const float *)beta == 0;
}

/* fake_enqueue for calls of cuDNN. */
cudnnStatus_t fake_dnn_enqueue(cudnnHandle_t handle, const char *name, const struct cuda_range *ranges,
                               int n_ranges, void (*run)(void *payload), const void *payload,
                               size_t payload_bytes);

#endif
