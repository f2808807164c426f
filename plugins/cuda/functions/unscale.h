/* y = x / scale */
CUDA_BODY void unscale_quad(const struct cuda_args *a, int64_t i, int n) {
    struct cuda_quad_f32 x = cuda_load_quad(a, 0, i, n);
    float scale = cuda_load(a, 1, 0);
    for (int j = 0; j < CUDA_QUAD; j++)
        x.at[j] /= scale;
    cuda_store_quad(a, 0, i, n, x);
}
