/* Statistics of a shard's channels, and the table for batch_norm_apply.
   in: x, weight, bias; out: mean, var, stats, table; dim: channels, inner (cuda_of_channel), images; number: eps */
CUDA_BODY float batch_norm_stats_element(const struct cuda_args *a, int64_t row, int64_t k) {
    return cuda_load(a, 0, cuda_of_channel(a, row, k));
}

CUDA_BODY void batch_norm_stats_finish(const struct cuda_args *a, int64_t row, const struct cuda_moments *m) {
    float var = (float)(m->m2 / m->n); /* rounded, as batch_norm_given sees it */
    if (a->out[0])
        cuda_store(a, 0, row, (float)m->mean);
    if (a->out[1])
        cuda_store(a, 1, row, var);
    cuda_norm_stats((float *)a->out[2], a->dim[0], row, m->n > 1, (double)a->dim[2], m->mean,
                    m->m2 / (m->n - 1));
    cuda_norm_put(a->out[3], row, m->mean,
                  (double)cuda_load(a, 1, row) / sqrt((double)var + (double)a->number[0]),
                  cuda_load(a, 2, row));
}
