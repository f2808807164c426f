/* What cuDNN proposes for a convolution, fastest first: here one by transforms, which does not compute, then those that
   the stand-in has. */
#include "fakednn.h"

#define PROPOSE(perf, ...)                                                             \
    do {                                                                               \
        static const int order[] = {__VA_ARGS__};                                      \
        int n = (int)(sizeof order / sizeof *order);                                   \
        *n_found = n_wanted < n ? n_wanted : n;                                        \
        for (int i = 0; i < *n_found; i++) {                                           \
            found[i] = (perf){.status = CUDNN_STATUS_SUCCESS, .time = (float)(i + 1)}; \
            found[i].algo = order[i];                                                  \
        }                                                                              \
    } while (0)

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w,
                                                     cudnnConvolutionDescriptor_t c,
                                                     cudnnTensorDescriptor_t y, int n_wanted, int *n_found,
                                                     cudnnConvolutionFwdAlgoPerf_t *found) {
    (void)handle, (void)x, (void)w, (void)c, (void)y;
    PROPOSE(cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
            CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                          cudnnTensorDescriptor_t dy,
                                                          cudnnConvolutionDescriptor_t c,
                                                          cudnnTensorDescriptor_t dx, int n_wanted,
                                                          int *n_found,
                                                          cudnnConvolutionBwdDataAlgoPerf_t *found) {
    (void)handle, (void)w, (void)dy, (void)c, (void)dx;
    PROPOSE(cudnnConvolutionBwdDataAlgoPerf_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT,
            CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                            cudnnTensorDescriptor_t dy,
                                                            cudnnConvolutionDescriptor_t c,
                                                            cudnnFilterDescriptor_t dw, int n_wanted,
                                                            int *n_found,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t *found) {
    (void)handle, (void)x, (void)dy, (void)c, (void)dw;
    PROPOSE(cudnnConvolutionBwdFilterAlgoPerf_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT,
            CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);
    return CUDNN_STATUS_SUCCESS;
}
