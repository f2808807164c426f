/* dx = y > 0 ? dy : 0        in: dy, y */
CUDA_BODY void relu_backward_quad(const struct cuda_args *a, int64_t i, int n) {
    struct cuda_quad_f32 dy = cuda_load_quad(a, 0, i, n), y = cuda_load_quad(a, 1, i, n);
    for (int j = 0; j < CUDA_QUAD; j++)
        dy.at[j] = y.at[j] > 0 ? dy.at[j] : 0;
    cuda_store_quad(a, 0, i, n, dy);
}
