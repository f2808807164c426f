/* y = (x - mean) scale + bias + residual, then relu if asked (NaN stays); mask = is y above 0?
   in: x, table, residual (or NULL); out: y, mask (or NULL); dim: channels, inner (cuda_channel_of), 1 for relu */
CUDA_BODY void batch_norm_apply_quad(const struct cuda_args *a, int64_t i, int n) {
    struct cuda_quad_f32 y = cuda_load_quad(a, 0, i, n), residual = {{0, 0, 0, 0}};
    struct cuda_quad_u8 mask;
    struct cuda_channel here = cuda_channel_of(a, i);
    if (a->in[2])
        residual = cuda_load_quad(a, 2, i, n);
    for (int j = 0; j < CUDA_QUAD; j++) {
        const struct cuda_quad_f32 norm = cuda_norm_of(a->in[1], here.c);
        y.at[j] = (y.at[j] - norm.at[NORM_MEAN]) * norm.at[NORM_SCALE] + norm.at[NORM_BIAS];
        if (a->in[2])
            y.at[j] += residual.at[j];
        mask.at[j] = y.at[j] > 0;
        if (a->dim[2])
            y.at[j] = y.at[j] <= 0 ? 0 : y.at[j];
        here = cuda_channel_next(a, here);
    }
    cuda_store_quad(a, 0, i, n, y);
    if (a->out[1] && a->dim[2])
        cuda_store_mask(a, 1, i, n, mask);
    else if (a->out[1] && i == 0) /* one element, which nobody reads */
        ((uint8_t *)a->out[1])[0] = 0;
}
