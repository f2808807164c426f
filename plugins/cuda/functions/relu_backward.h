/* dx = y > 0 ? dy : 0        in: dy, y */
CUDA_BODY void relu_backward_map(const struct cuda_args *a, int64_t i) {
    cuda_store(a, 0, i, cuda_load(a, 1, i) > 0 ? cuda_load(a, 0, i) : 0);
}
