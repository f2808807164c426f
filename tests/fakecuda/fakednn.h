/* What cuDNN's descriptors are in the stand-in: plain structs. It knows NHWC and float32 alone. */
#ifndef FAKEDNN_H
#define FAKEDNN_H

#include "fakecuda.h"

#include <cudnn.h>

struct cudnnContext {
    cudaStream_t stream;
};

struct cudnnTensorStruct {
    int64_t dim[4]; /* N,C,H,W */
};

struct cudnnFilterStruct {
    int64_t dim[4]; /* O,I,H,W */
};

struct cudnnConvolutionStruct {
    int64_t padding[2], stride[2], dilation[2], groups;
};

static inline size_t fake_tensor_bytes(const int64_t dim[4]) {
    return (size_t)(dim[0] * dim[1] * dim[2] * dim[3]) * sizeof(float);
}

/* Outputs are alpha * result + beta * what was there: known for 1 and 0. */
static inline bool fake_is_plain(const void *alpha, const void *beta) {
    return *(const float *)alpha == 1 && *(const float *)beta == 0;
}

/* fake_enqueue for calls of cuDNN. */
cudnnStatus_t fake_dnn_enqueue(cudnnHandle_t handle, const char *name, const struct cuda_range *ranges,
                               int n_ranges, void (*run)(void *payload), const void *payload,
                               size_t payload_bytes);

#endif
