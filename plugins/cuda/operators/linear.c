/* linear and its two gradients, by cuBLASLt. Matrices there lie column by column, so our rows [rows,in] are its matrix
   in x rows:    y' = w^T x'      dx' = w dy'      dw' = x' dy'^T      (' : as cuBLASLt sees it)
   The algorithm is the first that cuBLASLt proposes for the shapes; all of those add in a fixed order. What
   it proposes none for, our own functions do. */
#include "library.h"
#include "operators/own_products.h"

#include <stdlib.h>

enum { MAX_WORKSPACE = 32 << 20 };

struct pass { /* D = A B: output 0 is D, input 1 is A and input 0 is B, in all three */
    const struct cvy_kernel_impl *impl;
    bool is_a_turned, is_b_turned; /* A^T, B^T instead */
};

static const struct pass forward_pass = {&cuda_kernel_linear, true, false};
static const struct pass data_pass = {&cuda_kernel_linear_backward_data, false, false};
static const struct pass weights_pass = {&cuda_kernel_linear_backward_weights, false, true};

struct linear {
    struct cvy_kernel base;
    struct cuda_device *device;
    const struct pass *pass;
    cublasLtMatmulDesc_t multiply;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;
    bool adds_bias;        /* cuBLASLt adds it, of the type of y */
    struct cuda_bias bias; /* else a launch of our own */
};

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    const struct linear *k = (const struct linear *)kernel;
    const float one = 1, zero = 0;
    if (k->adds_bias)
        TRY_BLAS(k->device, cublasLtMatmulDescSetAttribute(k->multiply, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                           &in[2], sizeof in[2]));
    cublasStatus_t code = cublasLtMatmul(
        k->device->cublas, k->multiply, &one, in[1], k->a, in[0], k->b, &zero, out[0], k->d, out[0], k->d,
        &k->algorithm, k->workspace ? cuda_workspace(scratch) : NULL, k->workspace, cuda_stream(k->device));
    if (code != CUBLAS_STATUS_SUCCESS)
        return cuda_failed_blas(k->device->base.name, code, k->pass->impl->op);
    return k->bias.channels ? cuda_add_bias(k->device, &k->bias, out[0], in[2]) : CVY_OK;
}

static void release(struct cvy_kernel *kernel) {
    struct linear *k = (struct linear *)kernel;
    if (!k)
        return;
    if (k->multiply)
        (void)cublasLtMatmulDescDestroy(k->multiply);
    if (k->a)
        (void)cublasLtMatrixLayoutDestroy(k->a);
    if (k->b)
        (void)cublasLtMatrixLayoutDestroy(k->b);
    if (k->d)
        (void)cublasLtMatrixLayoutDestroy(k->d);
    free(k);
}

/* ---- preparing ------------------------------------------------------------------------------------------- */

static cudaDataType_t blas_type(cvy_dtype type) {
    return type == CVY_BF16 ? CUDA_R_16BF : type == CVY_F16 ? CUDA_R_16F : CUDA_R_32F;
}

/* [rows,last] is cuBLASLt's matrix last x rows. */
static cvy_status describe_matrix(struct cuda_device *me, const struct cvy_operand_spec *spec,
                                  cublasLtMatrixLayout_t *out) {
    const struct cvy_shape *shape = &spec->desc.shape;
    int64_t last = shape->dim[shape->n - 1];
    TRY_BLAS(me, cublasLtMatrixLayoutCreate(out, blas_type(spec->desc.dtype), (uint64_t)last,
                                            (uint64_t)(cvy_shape_count(shape) / last), last));
    return CVY_OK;
}

static cvy_status describe(struct linear *k, const struct cvy_call *call) {
    struct cuda_device *me = k->device;
    cublasOperation_t turned = CUBLAS_OP_T;
    cublasLtEpilogue_t with_bias = CUBLASLT_EPILOGUE_BIAS;
    bool is_tf32 = me->base.spec.allow_tf32 && call->in[0].desc.dtype == CVY_F32;
    TRY_BLAS(me, cublasLtMatmulDescCreate(
                     &k->multiply, is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    if (k->pass->is_a_turned)
        TRY_BLAS(me, cublasLtMatmulDescSetAttribute(k->multiply, CUBLASLT_MATMUL_DESC_TRANSA, &turned,
                                                    sizeof turned));
    if (k->pass->is_b_turned)
        TRY_BLAS(me, cublasLtMatmulDescSetAttribute(k->multiply, CUBLASLT_MATMUL_DESC_TRANSB, &turned,
                                                    sizeof turned));
    if (k->adds_bias)
        TRY_BLAS(me, cublasLtMatmulDescSetAttribute(k->multiply, CUBLASLT_MATMUL_DESC_EPILOGUE, &with_bias,
                                                    sizeof with_bias));
    CVY_TRY(describe_matrix(me, &call->in[1], &k->a));
    CVY_TRY(describe_matrix(me, &call->in[0], &k->b));
    return describe_matrix(me, &call->out[0], &k->d);
}

/* Only algorithms that can do with the alignment of our operands. */
static cublasStatus_t fill_preference(cublasLtMatmulPreference_t preference) {
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint64_t workspace = MAX_WORKSPACE;
    const uint32_t alignment = CVY_ALIGN;
    cublasStatus_t code = cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments && code == CUBLAS_STATUS_SUCCESS; i++)
        code = cublasLtMatmulPreferenceSetAttribute(preference, alignments[i], &alignment, sizeof alignment);
    return code;
}

static cvy_status choose_algorithm(struct linear *k, bool *is_found) {
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;
    TRY_BLAS(k->device, cublasLtMatmulPreferenceCreate(&preference));
    cublasStatus_t code = fill_preference(preference);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = cublasLtMatmulAlgoGetHeuristic(k->device->cublas, k->multiply, k->a, k->b, k->d, k->d,
                                              preference, 1, &found, &n);
    (void)cublasLtMatmulPreferenceDestroy(preference);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = n == 1 ? found.state : CUBLAS_STATUS_NOT_SUPPORTED;
    *is_found = code == CUBLAS_STATUS_SUCCESS;
    if (code == CUBLAS_STATUS_NOT_SUPPORTED)
        return CVY_OK;
    if (code != CUBLAS_STATUS_SUCCESS)
        return cuda_failed_blas(k->device->base.name, code, k->pass->impl->op);
    k->algorithm = found.algo;
    k->workspace = found.workspaceSize;
    return CVY_OK;
}

static cvy_status make(struct cvy_device *device, const struct cvy_call *call, const struct pass *pass,
                       struct cvy_kernel **out, size_t *scratch_bytes) {
    struct linear *k;
    cvy_status status;
    bool is_forward = pass == &forward_pass, is_data = pass == &data_pass, is_found = false;
    const struct cvy_operand_spec *x = is_data ? &call->out[0] : &call->in[!is_forward];
    const struct cvy_operand_spec *y = is_forward ? &call->out[0] : &call->in[0];
    CVY_TRY(CVY_ALLOC(k, 1));
    k->base.impl = pass->impl;
    k->device = cuda_device(device);
    k->pass = pass;
    if (is_forward)
        k->bias = cuda_bias_of(call, call->in[1].desc.shape.dim[0]);
    k->adds_bias = k->bias.channels && k->bias.type == k->bias.y_type;
    if (k->adds_bias)
        k->bias.channels = 0;
    CVY_TRY_OUT(describe(k, call));
    CVY_TRY_OUT(choose_algorithm(k, &is_found));
    if (!is_found) {
        release(&k->base);
        return cuda_own_linear(device, call, x, y, out, scratch_bytes);
    }
    *scratch_bytes = cuda_workspace_scratch(k->workspace);
    *out = &k->base;
out:
    if (status != CVY_OK)
        release(&k->base);
    return status;
}

#define LINEAR_KERNEL(name, pass)                                                            \
    static cvy_status prepare_##name(struct cvy_device *device, const struct cvy_call *call, \
                                     struct cvy_kernel **out, size_t *scratch_bytes) {       \
        return make(device, call, &pass, out, scratch_bytes);                                \
    }                                                                                        \
    const struct cvy_kernel_impl cuda_kernel_##name = {                                      \
        .op = #name,                                                                         \
        .supports = cuda_supports_products,                                                  \
        .prepare = prepare_##name,                                                           \
        .run = run,                                                                          \
        .release = release,                                                                  \
    };
LINEAR_KERNEL(linear, forward_pass)
LINEAR_KERNEL(linear_backward_data, data_pass)
LINEAR_KERNEL(linear_backward_weights, weights_pass)
