/* y = (x - mean) scale + bias + residual, then relu if asked (NaN stays); mask = is y above 0?
   in: x, table, bias, residual (or NULL); out: y, mask (or NULL); dim: channels, inner (cuda_channel_of), 1 for relu */
CUDA_BODY void batch_norm_apply_map(const struct cuda_args *a, int64_t i) {
    int64_t c = cuda_channel_of(a, i);
    const float *of_channel = (const float *)a->in[1] + c * NORM_TABLE;
    uint8_t *mask = (uint8_t *)a->out[1];
    float y = (cuda_load(a, 0, i) - of_channel[NORM_MEAN]) * of_channel[NORM_SCALE] + cuda_load(a, 2, c);
    if (a->in[3])
        y += cuda_load(a, 3, i);
    if (a->dim[2]) {
        if (mask)
            mask[i] = y > 0;
        y = y <= 0 ? 0 : y;
    } else if (mask && i == 0) {
        mask[0] = 0; /* one element, which nobody reads */
    }
    cuda_store(a, 0, i, y);
}
