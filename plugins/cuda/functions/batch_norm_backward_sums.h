/* U = sum u, D = sum u (x - mean) of each channel, u = dy behind the relu: the gradients dbias = U and
   dweight = D / sqrt(var + eps), and either the table for batch_norm_backward_apply, or the shard's row {U, D, m}.
   in: dy, x, mean, var, mask (or NULL), weight (with the table); out: dweight, dbias, table, row (each may be NULL);
   dim: channels, inner (cuda_of_channel), m for the table (0: constants normalised), m of the row, its values;
   number: eps */
CUDA_BODY void batch_norm_backward_sums_value(const struct cuda_args *a, int64_t row, int64_t k,
                                              float *values) {
    int64_t at = cuda_of_channel(a, row, k);
    const uint8_t *mask = (const uint8_t *)a->in[4];
    /* a load without a branch, so that others need not wait for it */
    uint8_t bits = *(mask ? mask + at : (const uint8_t *)a->in[0]);
    float dy = cuda_load(a, 0, at), u = mask && !bits ? 0 : dy;
    values[0] = u;
    values[1] = u * (cuda_load(a, 1, at) - cuda_load(a, 2, row));
}

CUDA_BODY void batch_norm_backward_sums_finish(const struct cuda_args *a, int64_t row, const double *sums) {
    int64_t channels = a->dim[0];
    double var = (double)cuda_load(a, 3, row), eps = (double)a->number[0];
    float *out = (float *)a->out[3];
    if (a->out[0])
        cuda_store(a, 0, row, (float)(sums[1] / sqrt(var + eps)));
    if (a->out[1])
        cuda_store(a, 1, row, (float)sums[0]);
    if (a->out[2])
        cuda_norm_slope(a->out[2], row, sums, (double)a->dim[2], (double)cuda_load(a, 5, row),
                        (double)cuda_load(a, 2, row), var, eps);
    if (!out)
        return;
    out[row] = (float)sums[0];
    out[channels + row] = (float)sums[1];
    for (int64_t k = 2 * channels; k < a->dim[4] && row == 0; k++)
        out[k] = k == 2 * channels ? (float)a->dim[3] : 0;
}
