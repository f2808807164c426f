/* With --nondeterministic: which algorithm of a convolution cuDNN thinks the fastest, of those that are plain sums (the
   transforms and Winograd's are less exact), with a bounded workspace. -1: none. */
#ifndef CONVOY_CUDA_CONV_FASTEST_H
#define CONVOY_CUDA_CONV_FASTEST_H

#include <cudnn.h>

int cuda_fastest_forward(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                         cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y);
int cuda_fastest_data(cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t y,
                      cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t x);
int cuda_fastest_weights(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t y,
                         cudnnConvolutionDescriptor_t conv, cudnnFilterDescriptor_t w);

#endif
