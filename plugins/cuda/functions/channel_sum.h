/* y[c] = sum of x over all axes but one; a row of the fold is a channel.       dim: as cuda_of_channel */
CUDA_BODY void channel_sum_value(const struct cuda_args *a, int64_t row, int64_t k, float *values) {
    values[0] = cuda_load(a, 0, cuda_of_channel(a, row, k));
}

CUDA_BODY void channel_sum_finish(const struct cuda_args *a, int64_t row, const double *sums) {
    cuda_store(a, 0, row, (float)sums[0]);
}
