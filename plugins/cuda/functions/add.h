/* y = a + b */
CUDA_BODY void add_map(const struct cuda_args *a, int64_t i) {
    cuda_store(a, 0, i, cuda_load(a, 0, i) + cuda_load(a, 1, i));
}
