/* dx = dy / divisor       in: dy, divisor */
CUDA_BODY void batch_mean_backward_map(const struct cuda_args *a, int64_t i) {
    cuda_store(a, 0, i, cuda_load(a, 0, 0) / cuda_load(a, 1, 0));
}
