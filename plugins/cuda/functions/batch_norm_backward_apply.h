/* dx = gain u - offset - tilt (x - mean), dresidual = u = dy behind the relu; either may lie where dy does.
   in: dy, x, table, mask (or NULL); out: dx, dresidual (each may be NULL); dim: channels, inner (cuda_channel_of) */
CUDA_BODY void batch_norm_backward_apply_quad(const struct cuda_args *a, int64_t i, int n) {
    struct cuda_quad_f32 u = cuda_load_quad(a, 0, i, n), dx = cuda_load_quad(a, 1, i, n);
    struct cuda_quad_u8 mask = cuda_load_mask(a, 3, i, n);
    struct cuda_channel here = cuda_channel_of(a, i);
    for (int j = 0; j < CUDA_QUAD; j++) {
        const struct cuda_quad_f32 slope = cuda_norm_of(a->in[2], here.c);
        u.at[j] = mask.at[j] ? u.at[j] : 0;
        dx.at[j] = slope.at[SLOPE_GAIN] * u.at[j] - slope.at[SLOPE_OFFSET] -
                   slope.at[SLOPE_TILT] * (dx.at[j] - slope.at[SLOPE_MEAN]);
        here = cuda_channel_next(a, here);
    }
    if (a->out[0])
        cuda_store_quad(a, 0, i, n, dx);
    if (a->out[1])
        cuda_store_quad(a, 1, i, n, u);
}
