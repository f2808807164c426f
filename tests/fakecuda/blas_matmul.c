/* cuBLASLt's product of two matrices of float32, bfloat16 or float16, column by column. Its one algorithm wants a
   little workspace, which it overwrites. */
#include "fakecuda.h"

#include <cublasLt.h>
#include <stdlib.h>

struct matrix {
    int64_t rows, columns, step;
    uint8_t type; /* enum cuda_type */
};

struct multiply {
    bool is_a_turned, is_b_turned, has_bias, is_tf32;
    const void *bias; /* of the type of D */
};

struct preference {
    uint64_t workspace;
    bool is_set;
};

enum { WORKSPACE = 1024, WORKSPACE_ALIGN = 256, MAGIC = 0x4D41474C };

/* The headers' types are structs of numbers, of which the plugin has pointers alone. */
static struct matrix *matrix_of(cublasLtMatrixLayout_t m) { return (struct matrix *)(void *)m; }
static struct multiply *multiply_of(cublasLtMatmulDesc_t m) { return (struct multiply *)(void *)m; }

/* ---- descriptors ----------------------------------------------------------------------------------------- */

static cublasStatus_t make(size_t n_bytes, void *out) {
    void *made = calloc(1, n_bytes);
    *(void **)out = made;
    return made ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t step) {
    if (type != CUDA_R_32F && type != CUDA_R_16BF && type != CUDA_R_16F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (step < (int64_t)rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t code = make(sizeof(struct matrix), out);
    if (code == CUBLAS_STATUS_SUCCESS)
        *matrix_of(*out) = (struct matrix){(int64_t)rows, (int64_t)columns, step,
                                           type == CUDA_R_16BF  ? CUDA_BF16
                                           : type == CUDA_R_16F ? CUDA_F16
                                                                : CUDA_F32};
    return code;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matrix) {
    free(matrix);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    if ((compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32) || scale != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    cublasStatus_t code = make(sizeof(struct multiply), out);
    if (code == CUBLAS_STATUS_SUCCESS)
        multiply_of(*out)->is_tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    return code;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t multiply) {
    free(multiply);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute, const void *value,
                                              size_t n_bytes) {
    struct multiply *m = multiply_of(desc);
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        m->is_a_turned = *(const cublasOperation_t *)value == CUBLAS_OP_T;
        return n_bytes == sizeof(cublasOperation_t) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    case CUBLASLT_MATMUL_DESC_TRANSB:
        m->is_b_turned = *(const cublasOperation_t *)value == CUBLAS_OP_T;
        return n_bytes == sizeof(cublasOperation_t) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        m->has_bias = *(const cublasLtEpilogue_t *)value == CUBLASLT_EPILOGUE_BIAS;
        return m->has_bias ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        m->bias = *(const void *const *)value;
        return n_bytes == sizeof m->bias ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

/* ---- the algorithm --------------------------------------------------------------------------------------- */

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
    return make(sizeof(struct preference), out);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t n_bytes) {
    struct preference *p = (struct preference *)(void *)preference;
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        p->workspace = *(const uint64_t *)value;
        return n_bytes == sizeof p->workspace ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return n_bytes == sizeof(uint32_t) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

/* Do sizes and types of D = A B fit? The number of terms of each sum, or -1. */
static int64_t terms(const struct multiply *m, const struct matrix *a, const struct matrix *b,
                     const struct matrix *d) {
    int64_t rows = m->is_a_turned ? a->columns : a->rows, n = m->is_a_turned ? a->rows : a->columns;
    int64_t columns = m->is_b_turned ? b->rows : b->columns, n_b = m->is_b_turned ? b->columns : b->rows;
    bool fits = n == n_b && rows == d->rows && columns == d->columns && a->type == b->type &&
                (!m->is_tf32 || a->type == CUDA_F32);
    return fits && (d->type == a->type || d->type == CUDA_F32) ? n : -1;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t multiply,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int n_wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *n_found) {
    (void)handle;
    *n_found = 0;
    if (terms(multiply_of(multiply), matrix_of(a), matrix_of(b), matrix_of(d)) < 0 || n_wanted < 1 || c != d)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (((struct preference *)(void *)preference)->workspace < WORKSPACE || !fake_has_products())
        return CUBLAS_STATUS_NOT_SUPPORTED;
    results[0] = (cublasLtMatmulHeuristicResult_t){
        .algo.data = {MAGIC}, .workspaceSize = WORKSPACE, .state = CUBLAS_STATUS_SUCCESS};
    *n_found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- the product ----------------------------------------------------------------------------------------- */

struct job {
    struct multiply multiply;
    struct matrix a, b, d;
    const void *a_at, *b_at;
    void *d_at;
    unsigned char *workspace;
};

static double load(const void *values, uint8_t type, int64_t i) {
    return (double)(type == CUDA_F32 ? ((const float *)values)[i]
                                     : cuda_widen(type, ((const uint16_t *)values)[i]));
}

static void store(void *values, uint8_t type, int64_t i, double value) {
    if (type == CUDA_F32)
        ((float *)values)[i] = (float)value;
    else
        ((uint16_t *)values)[i] = cuda_narrow(type, (float)value);
}

static size_t item_bytes(const struct matrix *m) {
    return m->type == CUDA_F32 ? sizeof(float) : sizeof(uint16_t);
}

static void run(void *payload) {
    const struct job *j = payload;
    int64_t n = terms(&j->multiply, &j->a, &j->b, &j->d);
    int64_t a_row = j->multiply.is_a_turned ? j->a.step : 1, a_term = j->multiply.is_a_turned ? 1 : j->a.step;
    int64_t b_column = j->multiply.is_b_turned ? 1 : j->b.step,
            b_term = j->multiply.is_b_turned ? j->b.step : 1;
    for (int k = 0; k < WORKSPACE; k++)
        j->workspace[k] = 0xFF;
    for (int64_t column = 0; column < j->d.columns; column++) {
        for (int64_t row = 0; row < j->d.rows; row++) {
            double sum = j->multiply.has_bias ? load(j->multiply.bias, j->d.type, row) : 0;
            for (int64_t k = 0; k < n; k++)
                sum += load(j->a_at, j->a.type, row * a_row + k * a_term) *
                       load(j->b_at, j->b.type, column * b_column + k * b_term);
            store(j->d_at, j->d.type, column * j->d.step + row, sum);
        }
    }
}

static struct cuda_range range_of(const void *at, const struct matrix *m, bool is_write) {
    size_t n = (size_t)(m->step * (m->columns - 1) + m->rows);
    return (struct cuda_range){at, n * item_bytes(m), is_write};
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t multiply, const void *alpha,
                              const void *a_at, cublasLtMatrixLayout_t a, const void *b_at,
                              cublasLtMatrixLayout_t b, const void *beta, const void *c_at,
                              cublasLtMatrixLayout_t c, void *d_at, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
    (void)handle;
    const struct job j = {
        *multiply_of(multiply), *matrix_of(a), *matrix_of(b), *matrix_of(d), a_at, b_at, d_at, workspace};
    if (*(const float *)alpha != 1 || *(const float *)beta != 0 || c_at != d_at || c != d)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (terms(&j.multiply, &j.a, &j.b, &j.d) < 0 || !algorithm || algorithm->data[0] != MAGIC || !workspace ||
        workspace_bytes < WORKSPACE || (uintptr_t)workspace % WORKSPACE_ALIGN != 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct cuda_range ranges[] = {
        range_of(a_at, &j.a, false),
        range_of(b_at, &j.b, false),
        range_of(d_at, &j.d, true),
        {workspace, WORKSPACE, true},
        {j.multiply.bias, (size_t)j.d.rows * item_bytes(&j.d), false},
    };
    cudaError_t code =
        fake_enqueue(stream, "product", ranges, j.multiply.has_bias ? 5 : 4, run, &j, sizeof j);
    return code == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
