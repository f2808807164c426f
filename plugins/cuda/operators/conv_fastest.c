/* cuDNN's own estimates, three times the same with other types. */
#include "operators/conv_fastest.h"

#include <stdbool.h>
#include <stddef.h>

static const size_t MAX_WORKSPACE = (size_t)512 << 20;

#define BIT(algorithm) (1u << (algorithm))
static const unsigned forward_sums =
    BIT(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM) | BIT(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) |
    BIT(CUDNN_CONVOLUTION_FWD_ALGO_GEMM) | BIT(CUDNN_CONVOLUTION_FWD_ALGO_DIRECT);
static const unsigned data_sums =
    BIT(CUDNN_CONVOLUTION_BWD_DATA_ALGO_0) | BIT(CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
static const unsigned weights_sums = BIT(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0) |
                                     BIT(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1) |
                                     BIT(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3);

/* Proposals come fastest first. */
static bool fits(unsigned sums, int algorithm, cudnnStatus_t status, size_t n_bytes) {
    return status == CUDNN_STATUS_SUCCESS && sums & BIT(algorithm) && n_bytes <= MAX_WORKSPACE;
}

int cuda_fastest_forward(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                         cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y) {
    enum { CAP = CUDNN_CONVOLUTION_FWD_ALGO_COUNT };
    cudnnConvolutionFwdAlgoPerf_t found[CAP];
    int n = 0;
    if (cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, conv, y, CAP, &n, found) != CUDNN_STATUS_SUCCESS)
        return -1;
    for (int i = 0; i < n; i++) {
        if (fits(forward_sums, (int)found[i].algo, found[i].status, found[i].memory))
            return (int)found[i].algo;
    }
    return -1;
}

int cuda_fastest_data(cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t y,
                      cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t x) {
    enum { CAP = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT };
    cudnnConvolutionBwdDataAlgoPerf_t found[CAP];
    int n = 0;
    if (cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, w, y, conv, x, CAP, &n, found) !=
        CUDNN_STATUS_SUCCESS)
        return -1;
    for (int i = 0; i < n; i++) {
        if (fits(data_sums, (int)found[i].algo, found[i].status, found[i].memory))
            return (int)found[i].algo;
    }
    return -1;
}

int cuda_fastest_weights(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t y,
                         cudnnConvolutionDescriptor_t conv, cudnnFilterDescriptor_t w) {
    enum { CAP = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT };
    cudnnConvolutionBwdFilterAlgoPerf_t found[CAP];
    int n = 0;
    if (cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x, y, conv, w, CAP, &n, found) !=
        CUDNN_STATUS_SUCCESS)
        return -1;
    for (int i = 0; i < n; i++) {
        if (fits(weights_sums, (int)found[i].algo, found[i].status, found[i].memory))
            return (int)found[i].algo;
    }
    return -1;
}
