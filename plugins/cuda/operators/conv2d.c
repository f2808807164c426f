/* conv2d and its two gradients, by cuDNN, on images and weights in nhwc.
   The algorithms are fixed, and deterministic: implicit GEMM with precomputed indices forward (without them where cuDNN
   has none for the call), algorithm 1 of both gradients; cuDNN's algorithm 0 of these adds by atomics, in any order. So
   the bits of a call depend on its shapes and the GPU alone. (With --nondeterministic cuDNN proposes:
   conv_fastest.h.) What cuDNN has none of these for, our own functions do. */
#include "library.h"
#include "operators/conv_fastest.h"
#include "operators/own_products.h"

#include "ops/conv2d.h"

#include <stdlib.h>

struct conv;
struct pass { /* how one of the three operators is called */
    const struct cvy_kernel_impl *impl;
    int n_algorithms, algorithms[2]; /* the first one that cuDNN has is taken */
    int (*fastest)(const struct conv *k);
    cudnnStatus_t (*measure)(const struct conv *k, size_t *n_bytes);
    cudnnStatus_t (*call)(const struct conv *k, void *const *in, void *const *out, void *workspace);
};

struct conv {
    struct cvy_kernel base;
    struct cuda_device *device;
    const struct pass *pass;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
    int algorithm;
    size_t workspace;
    struct cuda_bias bias; /* of a forward call */
    /* Of 16 bits, bias is added by cuDNN, before y is rounded; else NULL. */
    cudnnTensorDescriptor_t fused_bias;
    cudnnActivationDescriptor_t identity;
    /* cuDNN gives dw in the type of its factors: elements that are made so in scratch memory, and then cast; else 0 */
    int64_t n_narrow;
    cvy_dtype type; /* of the factors */
};

/* ---- the three calls ------------------------------------------------------------------------------------- */

static const float one = 1, zero = 0;

static int forward_fastest(const struct conv *k) {
    return cuda_fastest_forward(k->device->cudnn, k->x, k->w, k->conv, k->y);
}

static cudnnStatus_t forward_measure(const struct conv *k, size_t *n_bytes) {
    return cudnnGetConvolutionForwardWorkspaceSize(k->device->cudnn, k->x, k->w, k->conv, k->y,
                                                   (cudnnConvolutionFwdAlgo_t)k->algorithm, n_bytes);
}

static cudnnStatus_t forward_call(const struct conv *k, void *const *in, void *const *out, void *workspace) {
    return cudnnConvolutionForward(k->device->cudnn, &one, k->x, in[0], k->w, in[1], k->conv,
                                   (cudnnConvolutionFwdAlgo_t)k->algorithm, workspace, k->workspace, &zero,
                                   k->y, out[0]);
}

static cudnnStatus_t fused_call(const struct conv *k, void *const *in, void *const *out, void *workspace) {
    return cudnnConvolutionBiasActivationForward(
        k->device->cudnn, &one, k->x, in[0], k->w, in[1], k->conv, (cudnnConvolutionFwdAlgo_t)k->algorithm,
        workspace, k->workspace, &zero, k->y, out[0], k->fused_bias, in[2], k->identity, k->y, out[0]);
}

static int data_fastest(const struct conv *k) {
    return cuda_fastest_data(k->device->cudnn, k->w, k->y, k->conv, k->x);
}

static cudnnStatus_t data_measure(const struct conv *k, size_t *n_bytes) {
    return cudnnGetConvolutionBackwardDataWorkspaceSize(k->device->cudnn, k->w, k->y, k->conv, k->x,
                                                        (cudnnConvolutionBwdDataAlgo_t)k->algorithm, n_bytes);
}

static cudnnStatus_t data_call(const struct conv *k, void *const *in, void *const *out, void *workspace) {
    return cudnnConvolutionBackwardData(k->device->cudnn, &one, k->w, in[1], k->y, in[0], k->conv,
                                        (cudnnConvolutionBwdDataAlgo_t)k->algorithm, workspace, k->workspace,
                                        &zero, k->x, out[0]);
}

static int weights_fastest(const struct conv *k) {
    return cuda_fastest_weights(k->device->cudnn, k->x, k->y, k->conv, k->w);
}

static cudnnStatus_t weights_measure(const struct conv *k, size_t *n_bytes) {
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(
        k->device->cudnn, k->x, k->y, k->conv, k->w, (cudnnConvolutionBwdFilterAlgo_t)k->algorithm, n_bytes);
}

static cudnnStatus_t weights_call(const struct conv *k, void *const *in, void *const *out, void *workspace) {
    return cudnnConvolutionBackwardFilter(k->device->cudnn, &one, k->x, in[1], k->y, in[0], k->conv,
                                          (cudnnConvolutionBwdFilterAlgo_t)k->algorithm, workspace,
                                          k->workspace, &zero, k->w, out[0]);
}

static const struct pass forward_pass = {
    &cuda_kernel_conv2d,
    2,
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM},
    forward_fastest,
    forward_measure,
    forward_call};
static const struct pass data_pass = {&cuda_kernel_conv2d_backward_data,
                                      1,
                                      {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1},
                                      data_fastest,
                                      data_measure,
                                      data_call};
static const struct pass weights_pass = {&cuda_kernel_conv2d_backward_weights,
                                         1,
                                         {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1},
                                         weights_fastest,
                                         weights_measure,
                                         weights_call};

/* ---- slots ----------------------------------------------------------------------------------------------- */

/* The bytes in front of the workspace for a result in another type. */
static size_t narrow_bytes(const struct conv *k) {
    return cvy_align_up((size_t)k->n_narrow * cvy_dtype_size(k->type), CUDA_WORKSPACE_ALIGN);
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    const struct conv *k = (const struct conv *)kernel;
    char *narrow = cuda_workspace(scratch);
    void *const *result = k->n_narrow ? (void *const[]){narrow} : out;
    TRY_DNN(k->device, cudnnSetStream(k->device->cudnn, cuda_stream(k->device)));
    void *workspace = k->workspace ? narrow + narrow_bytes(k) : NULL;
    cudnnStatus_t code = k->fused_bias ? fused_call(k, in, out, workspace) : CUDNN_STATUS_NOT_SUPPORTED;
    if (k->fused_bias && CUDNN_STATUS_CATEGORY(code) != CUDNN_STATUS_NOT_SUPPORTED)
        return code == CUDNN_STATUS_SUCCESS ? CVY_OK : cuda_failed_dnn(k->device->base.name, code, "conv2d");
    code = k->pass->call(k, in, result, workspace);
    if (code != CUDNN_STATUS_SUCCESS)
        return cuda_failed_dnn(k->device->base.name, code, k->pass->impl->op);
    if (k->n_narrow)
        return cuda_cast(k->device, k->n_narrow, k->type, narrow, CVY_F32, out[0]);
    return k->bias.channels ? cuda_add_bias(k->device, &k->bias, out[0], in[2]) : CVY_OK;
}

static void release(struct cvy_kernel *kernel) {
    struct conv *k = (struct conv *)kernel;
    if (!k)
        return;
    if (k->x)
        (void)cudnnDestroyTensorDescriptor(k->x);
    if (k->y)
        (void)cudnnDestroyTensorDescriptor(k->y);
    if (k->fused_bias)
        (void)cudnnDestroyTensorDescriptor(k->fused_bias);
    if (k->identity)
        (void)cudnnDestroyActivationDescriptor(k->identity);
    if (k->w)
        (void)cudnnDestroyFilterDescriptor(k->w);
    if (k->conv)
        (void)cudnnDestroyConvolutionDescriptor(k->conv);
    free(k);
}

static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cuda_choose_nhwc(call);
    return CVY_OK;
}

/* Tensor cores round nothing of a number of 16 bits; of a float32 they would. */
static cudnnMathType_t math_type(const struct cuda_device *me, cvy_dtype type) {
    if (type != CVY_F32)
        return CUDNN_TENSOR_OP_MATH;
    return me->base.spec.allow_tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

static cvy_status describe(struct conv *k, const struct cvy_conv2d_attrs *a, const struct cvy_operand_spec *x,
                           const struct cvy_operand_spec *w, const struct cvy_operand_spec *y) {
    struct cuda_device *me = k->device;
    const int64_t *dim = w->desc.shape.dim; /* of a size that the images' descriptors have room for */
    CVY_TRY(cuda_tensor_new(me, &x->desc, cuda_nhwc, &k->x));
    CVY_TRY(cuda_tensor_new(me, &y->desc, cuda_nhwc, &k->y));
    TRY_DNN(me, cudnnCreateFilterDescriptor(&k->w));
    TRY_DNN(me, cudnnSetFilter4dDescriptor(k->w, cuda_dnn_type(x->desc.dtype), CUDNN_TENSOR_NHWC, (int)dim[0],
                                           (int)dim[1], (int)a->kernel[0], (int)a->kernel[1]));
    TRY_DNN(me, cudnnCreateConvolutionDescriptor(&k->conv));
    TRY_DNN(me, cudnnSetConvolution2dDescriptor(
                    k->conv, (int)a->padding[0], (int)a->padding[1], (int)a->stride[0], (int)a->stride[1],
                    (int)a->dilation[0], (int)a->dilation[1], CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    TRY_DNN(me, cudnnSetConvolutionGroupCount(k->conv, (int)a->groups));
    TRY_DNN(me, cudnnSetConvolutionMathType(k->conv, math_type(me, x->desc.dtype)));
    return CVY_OK;
}

/* The bias of a forward call: by cuDNN, which has it for one algorithm, where y would else be rounded twice. */
static cvy_status describe_bias(struct conv *k, const struct cvy_call *call) {
    struct cuda_device *me = k->device;
    k->bias = cuda_bias_of(call, call->out[0].desc.shape.dim[1]);
    if (!k->bias.channels || k->type == CVY_F32 || k->bias.type != k->type ||
        k->algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
        return CVY_OK;
    TRY_DNN(me, cudnnCreateActivationDescriptor(&k->identity));
    TRY_DNN(me, cudnnSetActivationDescriptor(k->identity, CUDNN_ACTIVATION_IDENTITY, CUDNN_PROPAGATE_NAN, 0));
    return cuda_tensor_new(me, &(struct cvy_desc){k->type, CVY_SHAPE(1, k->bias.channels, 1, 1)}, cuda_nhwc,
                           &k->fused_bias);
}

/* *is_found: cuDNN has one of the pass's algorithms for this call. */
static cvy_status choose_algorithm(struct conv *k, bool *is_found) {
    cudnnStatus_t code = CUDNN_STATUS_NOT_SUPPORTED;
    if (k->device->base.spec.is_nondeterministic) {
        k->algorithm = k->pass->fastest(k);
        code = k->algorithm >= 0 ? k->pass->measure(k, &k->workspace) : CUDNN_STATUS_NOT_SUPPORTED;
    }
    for (int i = 0; i < k->pass->n_algorithms && code != CUDNN_STATUS_SUCCESS; i++) {
        k->algorithm = k->pass->algorithms[i];
        code = k->pass->measure(k, &k->workspace);
    }
    *is_found = code == CUDNN_STATUS_SUCCESS;
    if (*is_found || CUDNN_STATUS_CATEGORY(code) == CUDNN_STATUS_NOT_SUPPORTED)
        return CVY_OK;
    return cuda_failed_dnn(k->device->base.name, code, k->pass->impl->op);
}

static cvy_status make(struct cvy_device *device, const struct cvy_call *call, const struct pass *pass,
                       struct cvy_kernel **out, size_t *scratch_bytes) {
    struct conv *k;
    cvy_status status;
    bool is_forward = pass == &forward_pass, is_data = pass == &data_pass, is_found = false;
    const struct cvy_operand_spec *x = is_data ? &call->out[0] : &call->in[!is_forward];
    const struct cvy_operand_spec *w = is_forward || is_data ? &call->in[1] : &call->out[0];
    const struct cvy_operand_spec *y = is_forward ? &call->out[0] : &call->in[0];
    CVY_TRY(CVY_ALLOC(k, 1));
    k->base.impl = pass->impl;
    k->device = cuda_device(device);
    k->pass = pass;
    k->type = x->desc.dtype;
    CVY_TRY_OUT(describe(k, call->attrs, x, w, y));
    CVY_TRY_OUT(choose_algorithm(k, &is_found));
    if (!is_found) {
        release(&k->base);
        return cuda_own_conv(device, call, x, y, out, scratch_bytes);
    }
    if (is_forward)
        CVY_TRY_OUT(describe_bias(k, call));
    if (w->desc.dtype != k->type)
        k->n_narrow = cvy_shape_count(&w->desc.shape);
    *scratch_bytes = cuda_workspace_scratch(narrow_bytes(k) + k->workspace);
    *out = &k->base;
out:
    if (status != CVY_OK)
        release(&k->base);
    return status;
}

#define CONV_KERNEL(name, pass)                                                              \
    static cvy_status prepare_##name(struct cvy_device *device, const struct cvy_call *call, \
                                     struct cvy_kernel **out, size_t *scratch_bytes) {       \
        return make(device, call, &pass, out, scratch_bytes);                                \
    }                                                                                        \
    const struct cvy_kernel_impl cuda_kernel_##name = {                                      \
        .op = #name,                                                                         \
        .supports = cuda_supports_products,                                                  \
        .choose = choose,                                                                    \
        .prepare = prepare_##name,                                                           \
        .run = run,                                                                          \
        .release = release,                                                                  \
    };
CONV_KERNEL(conv2d, forward_pass)
CONV_KERNEL(conv2d_backward_data, data_pass)
CONV_KERNEL(conv2d_backward_weights, weights_pass)
