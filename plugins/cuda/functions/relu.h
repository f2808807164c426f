/* y = max(x, 0); NaN stays */
CUDA_BODY void relu_quad(const struct cuda_args *a, int64_t i, int n) {
    struct cuda_quad_f32 x = cuda_load_quad(a, 0, i, n);
    for (int j = 0; j < CUDA_QUAD; j++)
        x.at[j] = x.at[j] <= 0 ? 0 : x.at[j];
    cuda_store_quad(a, 0, i, n, x);
}
