/* A shard's row for the others: mean [C], M2 [C], values of a channel, images, zeros.
   in: x; out: row; dim: channels, inner (cuda_of_channel), images, values of a row */
CUDA_BODY float batch_norm_moments_element(const struct cuda_args *a, int64_t row, int64_t k) {
    return cuda_load(a, 0, cuda_of_channel(a, row, k));
}

CUDA_BODY void batch_norm_moments_finish(const struct cuda_args *a, int64_t row,
                                         const struct cuda_moments *m) {
    int64_t channels = a->dim[0];
    float *out = (float *)a->out[0];
    out[row] = (float)m->mean;
    out[channels + row] = (float)m->m2;
    for (int64_t k = 2 * channels; k < a->dim[3] && row == 0; k++)
        out[k] = k == 2 * channels ? (float)m->n : k == 2 * channels + 1 ? (float)a->dim[2] : 0;
}
