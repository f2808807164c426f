/* Statistics of the whole batch, channel by channel, out of the rows of all shards; stats with this shard's images.
   in: rows, row; out: mean, var, stats; dim: channels, rows, values of a row */
CUDA_BODY void batch_norm_merge_map(const struct cuda_args *a, int64_t i) {
    int64_t channels = a->dim[0];
    struct cuda_moments all = cuda_tree_moments((const float *)a->in[0], a->dim[1], a->dim[2], channels, i);
    if (a->out[0])
        cuda_store(a, 0, i, (float)all.mean);
    if (a->out[1])
        cuda_store(a, 1, i, all.n > 0 ? (float)(all.m2 / all.n) : 0);
    cuda_norm_stats((float *)a->out[2], channels, i, all.n > 1,
                    (double)((const float *)a->in[1])[2 * channels + 1], all.mean, all.m2 / (all.n - 1));
}
