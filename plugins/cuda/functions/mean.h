/* y[n] = mean of image n, which is a row.      dim: elements of an image */
CUDA_BODY void mean_value(const struct cuda_args *a, int64_t row, int64_t k, float *values) {
    values[0] = cuda_load(a, 0, row * a->dim[0] + k);
}

CUDA_BODY void mean_finish(const struct cuda_args *a, int64_t row, const double *sums) {
    cuda_store(a, 0, row, (float)(sums[0] / (double)a->dim[0]));
}
