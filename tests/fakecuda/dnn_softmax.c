/* cuDNN's softmax over the channels of images of one pixel, and its gradient. */
#include "fakednn.h"

#include <math.h>
#include <stdlib.h>

struct job {
    cudnnDataType_t type;
    int64_t rows, n;
    const void *y, *from; /* from: x, or dy; y: of a gradient */
    void *to;
};

static void forward_row(const struct job *j, float *to, const float *x) {
    double largest = x[0], sum = 0;
    for (int64_t k = 1; k < j->n; k++)
        largest = x[k] > largest ? x[k] : largest;
    for (int64_t k = 0; k < j->n; k++)
        sum += exp(x[k] - largest);
    for (int64_t k = 0; k < j->n; k++)
        to[k] = (float)(exp(x[k] - largest) / sum);
}

static void backward_row(const struct job *j, float *to, const float *dy, const float *y) {
    double sum = 0;
    for (int64_t k = 0; k < j->n; k++)
        sum += (double)dy[k] * y[k];
    for (int64_t k = 0; k < j->n; k++)
        to[k] = (float)(y[k] * (dy[k] - sum));
}

static void run(void *payload) {
    const struct job *j = payload;
    int64_t count = j->rows * j->n;
    float *from = fake_widen(j->from, j->type, count), *to = fake_widen(j->from, j->type, count);
    float *y = j->y ? fake_widen(j->y, j->type, count) : NULL;
    for (int64_t at = 0; at < count; at += j->n) {
        if (y)
            backward_row(j, to + at, from + at, y + at);
        else
            forward_row(j, to + at, from + at);
    }
    fake_narrow(j->to, j->type, to, count);
    free(from);
    free(to);
    free(y);
}

static bool is_known(cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode,
                     cudnnTensorDescriptor_t rows) {
    return algorithm == CUDNN_SOFTMAX_ACCURATE && mode == CUDNN_SOFTMAX_MODE_CHANNEL &&
           rows->dim[2] * rows->dim[3] == 1;
}

static bool is_same(cudnnTensorDescriptor_t a, cudnnTensorDescriptor_t b) {
    return a->dim[0] == b->dim[0] && a->dim[1] == b->dim[1] && a->type == b->type;
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                  cudnnSoftmaxMode_t mode, const void *alpha, cudnnTensorDescriptor_t x_desc,
                                  const void *x, const void *beta, cudnnTensorDescriptor_t y_desc, void *y) {
    if (!is_known(algorithm, mode, x_desc) || !fake_is_plain(alpha, beta))
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (!is_same(x_desc, y_desc))
        return CUDNN_STATUS_BAD_PARAM;
    const struct job j = {x_desc->type, x_desc->dim[0], x_desc->dim[1], NULL, x, y};
    size_t n_bytes = fake_tensor_bytes(x_desc->dim, x_desc->type);
    const struct cuda_range ranges[] = {{x, n_bytes, false}, {y, n_bytes, true}};
    return fake_dnn_enqueue(handle, "softmax", ranges, 2, run, &j, sizeof j);
}

cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                   cudnnSoftmaxMode_t mode, const void *alpha, cudnnTensorDescriptor_t y_desc,
                                   const void *y, cudnnTensorDescriptor_t dy_desc, const void *dy,
                                   const void *beta, cudnnTensorDescriptor_t dx_desc, void *dx) {
    if (!is_known(algorithm, mode, y_desc) || !fake_is_plain(alpha, beta))
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (!is_same(y_desc, dy_desc) || !is_same(y_desc, dx_desc))
        return CUDNN_STATUS_BAD_PARAM;
    const struct job j = {y_desc->type, y_desc->dim[0], y_desc->dim[1], y, dy, dx};
    size_t n_bytes = fake_tensor_bytes(y_desc->dim, y_desc->type);
    const struct cuda_range ranges[] = {{y, n_bytes, false}, {dy, n_bytes, false}, {dx, n_bytes, true}};
    return fake_dnn_enqueue(handle, "softmax", ranges, 3, run, &j, sizeof j);
}
