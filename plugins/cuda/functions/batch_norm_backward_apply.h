/* dx = gain u - offset - tilt (x - mean), dresidual = u = dy behind the relu; either may lie where dy does.
   in: dy, x, table, mask (or NULL); out: dx, dresidual (each may be NULL); dim: channels, inner (cuda_channel_of) */
CUDA_BODY void batch_norm_backward_apply_map(const struct cuda_args *a, int64_t i) {
    const float *slope = (const float *)a->in[2] + cuda_channel_of(a, i) * SLOPE_TABLE;
    const uint8_t *mask = (const uint8_t *)a->in[3];
    float u = mask && !mask[i] ? 0 : cuda_load(a, 0, i);
    float d = cuda_load(a, 1, i) - slope[SLOPE_MEAN];
    if (a->out[0])
        cuda_store(a, 0, i, slope[SLOPE_GAIN] * u - slope[SLOPE_OFFSET] - slope[SLOPE_TILT] * d);
    if (a->out[1])
        cuda_store(a, 1, i, u);
}
