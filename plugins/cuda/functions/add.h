/* y = a + b */
CUDA_BODY void add_quad(const struct cuda_args *a, int64_t i, int n) {
    struct cuda_quad_f32 left = cuda_load_quad(a, 0, i, n), right = cuda_load_quad(a, 1, i, n);
    for (int j = 0; j < CUDA_QUAD; j++)
        left.at[j] += right.at[j];
    cuda_store_quad(a, 0, i, n, left);
}
