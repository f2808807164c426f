/* cuDNN's three convolutions: one walk over the taps, channels innermost. Algorithm 0 of the
   weights' gradient adds the images in another order each time, as cuDNN's adds in any. Forward wants a workspace,
   for weights with their output channels innermost; the gradients want none. With FAKECUDA_PRODUCTS=0 it has none, as
   some cuDNN has none for some call. */
#include "fakednn.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct cudnnConvolutionStruct conv;
    cudnnDataType_t type;
    int64_t first; /* image */
    int64_t x_dim[4], w_dim[4], y_dim[4];
    float *x, *w, *y; /* or as bfloat16, while the job waits */
    float *bias;      /* of y's channels, or NULL; likewise */
    float *turned;    /* turned: weights as [group][tap][in][out] */
    void (*row)(const struct job *job, const float *x, int64_t group, int64_t tap, const float *y);
};

enum { WORKSPACE_ALIGN = 256 };

/* ---- products of one tap: the channels of one pixel of x and of y, in one group -------------------------- */

static int64_t taps_of(const struct job *j) { return j->w_dim[2] * j->w_dim[3]; }
static int64_t outs_of(const struct job *j) { return j->w_dim[0] / j->conv.groups; } /* of a group */

static void add_scaled(float *restrict to, const float *restrict from, float factor, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

static float *weights_at(const struct job *j, int64_t group, int64_t tap, int64_t out) {
    return j->w + ((group * outs_of(j) + out) * taps_of(j) + tap) * j->w_dim[1];
}

static void forward_row(const struct job *j, const float *x, int64_t group, int64_t tap, const float *y) {
    int64_t n_in = j->w_dim[1], n_out = outs_of(j);
    const float *w = j->turned + (group * taps_of(j) + tap) * n_in * n_out;
    for (int64_t i = 0; i < n_in; i++)
        add_scaled((float *)y, w + i * n_out, x[i], n_out);
}

static void data_row(const struct job *j, const float *x, int64_t group, int64_t tap, const float *y) {
    for (int64_t o = 0; o < outs_of(j); o++)
        add_scaled((float *)x, weights_at(j, group, tap, o), y[o], j->w_dim[1]);
}

static void weights_row(const struct job *j, const float *x, int64_t group, int64_t tap, const float *y) {
    for (int64_t o = 0; o < outs_of(j); o++)
        add_scaled(weights_at(j, group, tap, o), x, y[o], j->w_dim[1]);
}

/* ---- the walk -------------------------------------------------------------------------------------------- */

/* All taps of pixel (p, q) of image n of y. */
static void walk_pixel(const struct job *j, int64_t n, int64_t p, int64_t q) {
    const struct cudnnConvolutionStruct *c = &j->conv;
    int64_t height = j->x_dim[2], width = j->x_dim[3];
    float *y = j->y + ((n * j->y_dim[2] + p) * j->y_dim[3] + q) * j->y_dim[1];
    for (int64_t tap = 0; tap < taps_of(j); tap++) {
        int64_t h = p * c->stride[0] - c->padding[0] + tap / j->w_dim[3] * c->dilation[0];
        int64_t w = q * c->stride[1] - c->padding[1] + tap % j->w_dim[3] * c->dilation[1];
        if (h < 0 || h >= height || w < 0 || w >= width)
            continue;
        float *x = j->x + ((n * height + h) * width + w) * j->x_dim[1];
        for (int64_t g = 0; g < c->groups; g++)
            j->row(j, x + g * j->w_dim[1], g, tap, y + g * outs_of(j));
    }
}

static void turn_weights(const struct job *j) {
    int64_t n_in = j->w_dim[1], n_out = outs_of(j);
    for (int64_t g = 0; g < j->conv.groups; g++) {
        for (int64_t tap = 0; tap < taps_of(j); tap++) {
            for (int64_t k = 0; k < n_in * n_out; k++)
                j->turned[(g * taps_of(j) + tap) * n_in * n_out + k] =
                    weights_at(j, g, tap, k % n_out)[k / n_out];
        }
    }
}

static float *result_of(const struct job *j) {
    return j->row == forward_row ? j->y : j->row == data_row ? j->x : j->w;
}

static int64_t result_count(const struct job *j) {
    return fake_count(j->row == forward_row ? j->y_dim : j->row == data_row ? j->x_dim : j->w_dim);
}

static void compute(const struct job *j) {
    memset(result_of(j), 0, (size_t)result_count(j) * sizeof(float));
    for (int64_t i = 0; j->bias && i < fake_count(j->y_dim); i++)
        j->y[i] = j->bias[i % j->y_dim[1]];
    if (j->row == forward_row)
        turn_weights(j);
    for (int64_t n = 0; n < j->y_dim[0]; n++) {
        for (int64_t p = 0; p < j->y_dim[2]; p++) {
            for (int64_t q = 0; q < j->y_dim[3]; q++)
                walk_pixel(j, (j->first + n) % j->y_dim[0], p, q);
        }
    }
}

static void run(void *payload) {
    const struct job *j = payload;
    struct job wide = *j;
    if (j->type == CUDNN_DATA_FLOAT) {
        compute(j);
        return;
    }
    wide.x = fake_widen(j->x, j->type, fake_count(j->x_dim));
    wide.w = fake_widen(j->w, j->type, fake_count(j->w_dim));
    wide.y = fake_widen(j->y, j->type, fake_count(j->y_dim));
    wide.bias = j->bias ? fake_widen(j->bias, j->type, j->y_dim[1]) : NULL;
    compute(&wide);
    fake_narrow(result_of(j), j->type, result_of(&wide), result_count(j));
    free(wide.x);
    free(wide.w);
    free(wide.y);
    free(wide.bias);
}

/* ---- what fits together ---------------------------------------------------------------------------------- */

static cudnnStatus_t check(cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t x_desc,
                           cudnnFilterDescriptor_t w_desc, cudnnTensorDescriptor_t y_desc) {
    const int64_t *x = x_desc->dim, *w = w_desc->dim, *y = y_desc->dim;
    if (!fake_has_products())
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (x_desc->type != w_desc->type || x_desc->type != y_desc->type)
        return CUDNN_STATUS_BAD_PARAM;
    if (x[0] != y[0] || x[1] != w[1] * c->groups || y[1] != w[0] || w[0] % c->groups != 0)
        return CUDNN_STATUS_BAD_PARAM;
    for (int axis = 0; axis < 2; axis++) {
        int64_t span = (w[2 + axis] - 1) * c->dilation[axis] + 1;
        if (y[2 + axis] != (x[2 + axis] + 2 * c->padding[axis] - span) / c->stride[axis] + 1)
            return CUDNN_STATUS_BAD_PARAM;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t start(struct job *j, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                           cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t y) {
    *j = (struct job){.conv = *c, .type = x->type};
    memcpy(j->x_dim, x->dim, sizeof j->x_dim);
    memcpy(j->w_dim, w->dim, sizeof j->w_dim);
    memcpy(j->y_dim, y->dim, sizeof j->y_dim);
    return check(c, x, w, y);
}

/* Reads the other two operands and the bias, writes the result (0: x, 1: w, 2: y) and the workspace. */
static cudnnStatus_t enqueue(cudnnHandle_t handle, const struct job *j, int result, size_t workspace) {
    const int64_t bias[4] = {j->y_dim[1], 1, 1, j->bias ? 1 : 0};
    const struct cuda_range ranges[] = {{j->x, fake_tensor_bytes(j->x_dim, j->type), result == 0},
                                        {j->w, fake_tensor_bytes(j->w_dim, j->type), result == 1},
                                        {j->y, fake_tensor_bytes(j->y_dim, j->type), result == 2},
                                        {j->turned, workspace, true},
                                        {j->bias, fake_tensor_bytes(bias, j->type), false}};
    return fake_dnn_enqueue(handle, "convolution", ranges,
                            j->bias     ? 5
                            : workspace ? 4
                                        : 3,
                            run, j, sizeof *j);
}

/* ---- forward --------------------------------------------------------------------------------------------- */

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w,
                                                      cudnnConvolutionDescriptor_t c,
                                                      cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algorithm, size_t *n_bytes) {
    (void)handle;
    if (algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
        return CUDNN_STATUS_NOT_SUPPORTED;
    *n_bytes = fake_tensor_bytes(w->dim, CUDNN_DATA_FLOAT);
    return check(c, x, w, y);
}

static cudnnStatus_t forward(cudnnHandle_t handle, struct job *j, void *workspace, size_t n_bytes) {
    size_t needed = (size_t)fake_count(j->w_dim) * sizeof(float);
    if (!workspace || n_bytes < needed || (uintptr_t)workspace % WORKSPACE_ALIGN != 0)
        return CUDNN_STATUS_BAD_PARAM;
    j->turned = workspace;
    j->row = forward_row;
    return enqueue(handle, j, 2, needed);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_desc,
                                      const void *x, cudnnFilterDescriptor_t w_desc, const void *w,
                                      cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algorithm,
                                      void *workspace, size_t n_bytes, const void *beta,
                                      cudnnTensorDescriptor_t y_desc, void *y) {
    struct job j;
    cudnnStatus_t code = start(&j, x_desc, w_desc, c, y_desc);
    if (algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM || !fake_is_plain(alpha, beta))
        return CUDNN_STATUS_NOT_SUPPORTED;
    j.x = (float *)x, j.w = (float *)w, j.y = y;
    return code == CUDNN_STATUS_SUCCESS ? forward(handle, &j, workspace, n_bytes) : code;
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_desc, const void *x,
    cudnnFilterDescriptor_t w_desc, const void *w, cudnnConvolutionDescriptor_t c,
    cudnnConvolutionFwdAlgo_t algorithm, void *workspace, size_t n_bytes, const void *of_z,
    cudnnTensorDescriptor_t z_desc, const void *z, cudnnTensorDescriptor_t bias_desc, const void *bias,
    cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t y_desc, void *y) {
    struct job j;
    cudnnStatus_t code = start(&j, x_desc, w_desc, c, y_desc);
    if (algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM || !fake_is_plain(alpha, of_z) ||
        activation->mode != CUDNN_ACTIVATION_IDENTITY)
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (bias_desc->type != y_desc->type || fake_count(bias_desc->dim) != y_desc->dim[1] || z_desc != y_desc ||
        z != y)
        return CUDNN_STATUS_BAD_PARAM;
    j.x = (float *)x, j.w = (float *)w, j.y = y, j.bias = (float *)bias;
    return code == CUDNN_STATUS_SUCCESS ? forward(handle, &j, workspace, n_bytes) : code;
}

/* ---- gradients ------------------------------------------------------------------------------------------- */

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                           cudnnTensorDescriptor_t dy,
                                                           cudnnConvolutionDescriptor_t c,
                                                           cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm,
                                                           size_t *n_bytes) {
    (void)handle;
    *n_bytes = 0;
    return algorithm <= CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 ? check(c, dx, w, dy) : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           cudnnFilterDescriptor_t w_desc, const void *w,
                                           cudnnTensorDescriptor_t dy_desc, const void *dy,
                                           cudnnConvolutionDescriptor_t c,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void *workspace,
                                           size_t n_bytes, const void *beta, cudnnTensorDescriptor_t dx_desc,
                                           void *dx) {
    struct job j;
    (void)workspace, (void)n_bytes;
    cudnnStatus_t code = start(&j, dx_desc, w_desc, c, dy_desc);
    if (algorithm > CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 || !fake_is_plain(alpha, beta))
        return CUDNN_STATUS_NOT_SUPPORTED;
    j.x = dx, j.w = (float *)w, j.y = (float *)dy;
    j.row = data_row;
    return code == CUDNN_STATUS_SUCCESS ? enqueue(handle, &j, 0, 0) : code;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                             cudnnTensorDescriptor_t dy,
                                                             cudnnConvolutionDescriptor_t c,
                                                             cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm,
                                                             size_t *n_bytes) {
    (void)handle;
    *n_bytes = 0;
    return algorithm <= CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 ? check(c, x, dw, dy)
                                                            : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             cudnnTensorDescriptor_t x_desc, const void *x,
                                             cudnnTensorDescriptor_t dy_desc, const void *dy,
                                             cudnnConvolutionDescriptor_t c,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void *workspace,
                                             size_t n_bytes, const void *beta,
                                             cudnnFilterDescriptor_t dw_desc, void *dw) {
    struct job j;
    (void)workspace, (void)n_bytes;
    cudnnStatus_t code = start(&j, x_desc, dw_desc, c, dy_desc);
    if (algorithm > CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 || !fake_is_plain(alpha, beta))
        return CUDNN_STATUS_NOT_SUPPORTED;
    j.x = (float *)x, j.w = dw, j.y = (float *)dy;
    j.row = weights_row;
    static atomic_uint n_calls;
    if (algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 && j.y_dim[0] > 0)
        j.first = (int64_t)(atomic_fetch_add(&n_calls, 1) % (unsigned)j.y_dim[0]);
    return code == CUDNN_STATUS_SUCCESS ? enqueue(handle, &j, 1, 0) : code;
}
