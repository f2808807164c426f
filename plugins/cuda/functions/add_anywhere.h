/* y = a + b, of operands that begin anywhere */
CUDA_BODY void add_anywhere_map(const struct cuda_args *a, int64_t i) {
    cuda_store(a, 0, i, cuda_load(a, 0, i) + cuda_load(a, 1, i));
}
