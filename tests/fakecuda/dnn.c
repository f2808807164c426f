/* cuDNN's handle and descriptors, as far as the plugin uses them. */
#include "fakednn.h"

#include <stdlib.h>

/* ---- the handle ------------------------------------------------------------------------------------------ */

cudnnStatus_t cudnnCreate(cudnnHandle_t *out) {
    if (fake_call_fails("cudnnCreate"))
        return CUDNN_STATUS_EXECUTION_FAILED;
    *out = calloc(1, sizeof **out);
    return *out ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

const char *cudnnGetErrorString(cudnnStatus_t code) {
    switch (code) {
    case CUDNN_STATUS_SUCCESS:
        return "no error";
    case CUDNN_STATUS_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_EXECUTION_FAILED:
        return fake_reason("an error of cuDNN");
    default:
        return "an error of cuDNN";
    }
}

cudnnStatus_t fake_dnn_enqueue(cudnnHandle_t handle, const char *name, const struct cuda_range *ranges,
                               int n_ranges, void (*run)(void *payload), const void *payload,
                               size_t payload_bytes) {
    cudaError_t code = fake_enqueue(handle->stream, name, ranges, n_ranges, run, payload, payload_bytes);
    return code == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

/* ---- descriptors ----------------------------------------------------------------------------------------- */

#define DESCRIPTOR(function, handle_type)                                                        \
    cudnnStatus_t cudnnCreate##function(handle_type *out) {                                      \
        *out = calloc(1, sizeof **out);                                                          \
        return *out ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED; \
    }                                                                                            \
    cudnnStatus_t cudnnDestroy##function(handle_type descriptor) {                               \
        free(descriptor);                                                                        \
        return CUDNN_STATUS_SUCCESS;                                                             \
    }
DESCRIPTOR(TensorDescriptor, cudnnTensorDescriptor_t)
DESCRIPTOR(FilterDescriptor, cudnnFilterDescriptor_t)
DESCRIPTOR(ConvolutionDescriptor, cudnnConvolutionDescriptor_t)
DESCRIPTOR(ActivationDescriptor, cudnnActivationDescriptor_t)

static uint8_t half_type(cudnnDataType_t type) { return type == CUDNN_DATA_BFLOAT16 ? CUDA_BF16 : CUDA_F16; }

float *fake_widen(const void *values, cudnnDataType_t type, int64_t n) {
    float *wide = malloc((size_t)(n + !n) * sizeof *wide);
    for (int64_t i = 0; i < n && wide; i++)
        wide[i] = type == CUDNN_DATA_FLOAT ? ((const float *)values)[i]
                                           : cuda_widen(half_type(type), ((const uint16_t *)values)[i]);
    return wide;
}

void fake_narrow(void *to, cudnnDataType_t type, const float *values, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (type == CUDNN_DATA_FLOAT)
            ((float *)to)[i] = values[i];
        else
            ((uint16_t *)to)[i] = cuda_narrow(half_type(type), values[i]);
    }
}

static cudnnStatus_t set_dims(int64_t out[4], cudnnTensorFormat_t format, cudnnDataType_t type,
                              const int dim[4]) {
    if (format != CUDNN_TENSOR_NHWC ||
        (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_BFLOAT16 && type != CUDNN_DATA_HALF))
        return CUDNN_STATUS_NOT_SUPPORTED;
    for (int k = 0; k < 4; k++) {
        if (dim[k] < 1)
            return CUDNN_STATUS_BAD_PARAM;
        out[k] = dim[k];
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t t, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
    t->type = type;
    return set_dims(t->dim, format, type, (const int[]){n, c, h, w});
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t f, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
    f->type = type;
    return set_dims(f->dim, format, type, (const int[]){k, c, h, w});
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t c, int pad_h, int pad_w, int u,
                                              int v, int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t compute) {
    if (mode != CUDNN_CROSS_CORRELATION || compute != CUDNN_DATA_FLOAT)
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (pad_h < 0 || pad_w < 0 || u < 1 || v < 1 || dilation_h < 1 || dilation_w < 1)
        return CUDNN_STATUS_BAD_PARAM;
    *c = (struct cudnnConvolutionStruct){
        .padding = {pad_h, pad_w}, .stride = {u, v}, .dilation = {dilation_h, dilation_w}, .groups = 1};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t c, int groups) {
    c->groups = groups;
    return groups < 1 ? CUDNN_STATUS_BAD_PARAM : CUDNN_STATUS_SUCCESS;
}

/* Products are exact to float32 here, whatever is allowed. */
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t c, cudnnMathType_t type) {
    (void)c;
    bool is_known = type == CUDNN_DEFAULT_MATH || type == CUDNN_FMA_MATH || type == CUDNN_TENSOR_OP_MATH;
    return is_known ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t a, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan, double coefficient) {
    (void)nan, (void)coefficient;
    a->mode = mode;
    return mode == CUDNN_ACTIVATION_IDENTITY ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}
