/* y[c] = sum of x over all axes but one; a row of the fold is a channel.
   dim: channels; elements of x that lie side by side for one of them (H * W in N,C,H,W, 1 in N,H,W,C) */
CUDA_BODY void channel_sum_value(const struct cuda_args *a, int64_t row, int64_t k, float *values) {
    int64_t channels = a->dim[0], inner = a->dim[1];
    values[0] = cuda_load(a, 0, (k / inner * channels + row) * inner + k % inner);
}

CUDA_BODY void channel_sum_finish(const struct cuda_args *a, int64_t row, const double *sums) {
    cuda_store(a, 0, row, (float)sums[0]);
}
