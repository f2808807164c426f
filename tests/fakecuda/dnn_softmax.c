/* cuDNN's softmax over the channels of images of one pixel, and its gradient. */
#include "fakednn.h"

#include <math.h>

struct job {
    int64_t rows, n;
    const float *y, *from; /* from: x, or dy */
    float *to;
};

static void run_forward(void *payload) {
    const struct job *j = payload;
    for (int64_t r = 0; r < j->rows; r++) {
        const float *x = j->from + r * j->n;
        double largest = x[0], sum = 0;
        for (int64_t k = 1; k < j->n; k++)
            largest = x[k] > largest ? x[k] : largest;
        for (int64_t k = 0; k < j->n; k++)
            sum += exp(x[k] - largest);
        for (int64_t k = 0; k < j->n; k++) /* in place too */
            j->to[r * j->n + k] = (float)(exp(x[k] - largest) / sum);
    }
}

static void run_backward(void *payload) {
    const struct job *j = payload;
    for (int64_t r = 0; r < j->rows; r++) {
        const float *dy = j->from + r * j->n, *y = j->y + r * j->n;
        double sum = 0;
        for (int64_t k = 0; k < j->n; k++)
            sum += (double)dy[k] * y[k];
        for (int64_t k = 0; k < j->n; k++)
            j->to[r * j->n + k] = (float)(y[k] * (dy[k] - sum));
    }
}

static bool is_known(cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode,
                     cudnnTensorDescriptor_t rows) {
    return algorithm == CUDNN_SOFTMAX_ACCURATE && mode == CUDNN_SOFTMAX_MODE_CHANNEL &&
           rows->dim[2] * rows->dim[3] == 1;
}

static bool is_same(cudnnTensorDescriptor_t a, cudnnTensorDescriptor_t b) {
    return a->dim[0] == b->dim[0] && a->dim[1] == b->dim[1];
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                  cudnnSoftmaxMode_t mode, const void *alpha, cudnnTensorDescriptor_t x_desc,
                                  const void *x, const void *beta, cudnnTensorDescriptor_t y_desc, void *y) {
    if (!is_known(algorithm, mode, x_desc) || !fake_is_plain(alpha, beta))
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (!is_same(x_desc, y_desc))
        return CUDNN_STATUS_BAD_PARAM;
    const struct job j = {x_desc->dim[0], x_desc->dim[1], NULL, x, y};
    size_t n_bytes = fake_tensor_bytes(x_desc->dim);
    const struct cuda_range ranges[] = {{x, n_bytes, false}, {y, n_bytes, true}};
    return fake_dnn_enqueue(handle, "softmax", ranges, 2, run_forward, &j, sizeof j);
}

cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                   cudnnSoftmaxMode_t mode, const void *alpha, cudnnTensorDescriptor_t y_desc,
                                   const void *y, cudnnTensorDescriptor_t dy_desc, const void *dy,
                                   const void *beta, cudnnTensorDescriptor_t dx_desc, void *dx) {
    if (!is_known(algorithm, mode, y_desc) || !fake_is_plain(alpha, beta))
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (!is_same(y_desc, dy_desc) || !is_same(y_desc, dx_desc))
        return CUDNN_STATUS_BAD_PARAM;
    const struct job j = {y_desc->dim[0], y_desc->dim[1], y, dy, dx};
    size_t n_bytes = fake_tensor_bytes(y_desc->dim);
    const struct cuda_range ranges[] = {{y, n_bytes, false}, {dy, n_bytes, false}, {dx, n_bytes, true}};
    return fake_dnn_enqueue(handle, "softmax", ranges, 3, run_backward, &j, sizeof j);
}
