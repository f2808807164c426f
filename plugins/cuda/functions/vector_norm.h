/* y = root of the sum of x^2; all of x is one row */
CUDA_BODY void vector_norm_value(const struct cuda_args *a, int64_t row, int64_t k, float *values) {
    float x = cuda_load(a, 0, k);
    (void)row;
    values[0] = x * x;
}

CUDA_BODY void vector_norm_finish(const struct cuda_args *a, int64_t row, const double *sums) {
    cuda_store(a, 0, row, (float)sqrt(sums[0]));
}
