/* y[0] = 1 if a number of x is not finite; else it stays as it is. All who write, write the same. */
CUDA_BODY void not_finite_quad(const struct cuda_args *a, int64_t i, int n) {
    struct cuda_quad_f32 x = cuda_load_quad(a, 0, i, n);
    for (int j = 0; j < CUDA_QUAD; j++) {
        if (!(x.at[j] - x.at[j] == 0))
            cuda_store(a, 0, 0, 1);
    }
}
