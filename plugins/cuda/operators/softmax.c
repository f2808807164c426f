/* softmax over the last dimension and its gradient, by cuDNN, which sees rows as images of one pixel. */
#include "library.h"
#include "operator.h"

#include <stdlib.h>

struct softmax {
    struct cvy_kernel base;
    struct cuda_device *device;
    cudnnTensorDescriptor_t rows;
};

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    const struct softmax *k = (const struct softmax *)kernel;
    const float one = 1, zero = 0;
    (void)scratch;
    TRY_DNN(k->device, cudnnSetStream(k->device->cudnn, cuda_stream(k->device)));
    if (k->base.impl == &cuda_kernel_softmax)
        TRY_DNN(k->device,
                cudnnSoftmaxForward(k->device->cudnn, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
                                    &one, k->rows, in[0], &zero, k->rows, out[0]));
    else
        TRY_DNN(k->device,
                cudnnSoftmaxBackward(k->device->cudnn, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
                                     &one, k->rows, in[1], k->rows, in[0], &zero, k->rows, out[0]));
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) {
    struct softmax *k = (struct softmax *)kernel;
    if (!k)
        return;
    if (k->rows)
        (void)cudnnDestroyTensorDescriptor(k->rows);
    free(k);
}

static cvy_status make(struct cvy_device *device, const struct cvy_call *call,
                       const struct cvy_kernel_impl *impl, struct cvy_kernel **out) {
    struct softmax *k;
    CVY_TRY(CVY_ALLOC(k, 1));
    k->base.impl = impl;
    k->device = cuda_device(device);
    cvy_status status = cuda_tensor_new(k->device, &call->in[0].desc, NULL, &k->rows);
    if (status != CVY_OK) {
        release(&k->base);
        return status;
    }
    *out = &k->base;
    return CVY_OK;
}

#define SOFTMAX_KERNEL(name)                                                                 \
    static cvy_status prepare_##name(struct cvy_device *device, const struct cvy_call *call, \
                                     struct cvy_kernel **out, size_t *scratch_bytes) {       \
        *scratch_bytes = 0;                                                                  \
        return make(device, call, &cuda_kernel_##name, out);                                 \
    }                                                                                        \
    const struct cvy_kernel_impl cuda_kernel_##name = {                                      \
        .op = #name,                                                                         \
        .supports = cuda_supports_alike,                                                     \
        .prepare = prepare_##name,                                                           \
        .run = run,                                                                          \
        .release = release,                                                                  \
    };
SOFTMAX_KERNEL(softmax)
SOFTMAX_KERNEL(softmax_backward)
