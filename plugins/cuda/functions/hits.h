/* How many ranks are 0, how many below 5.      in: ranks as floats; out: hits */
CUDA_BODY void hits_value(const struct cuda_args *a, int64_t row, int64_t k, float *values) {
    float rank = cuda_load(a, 0, k);
    (void)row; /* there is one */
    values[0] = rank == 0;
    values[1] = rank < 5;
}

CUDA_BODY void hits_finish(const struct cuda_args *a, int64_t row, const double *sums) {
    cuda_store(a, 0, 2 * row, (float)sums[0]);
    cuda_store(a, 0, 2 * row + 1, (float)sums[1]);
}
