/* y = x, in another type */
CUDA_BODY void cast_quad(const struct cuda_args *a, int64_t i, int n) {
    cuda_store_quad(a, 0, i, n, cuda_load_quad(a, 0, i, n));
}
