/* The table for batch_norm_backward_apply out of the rows of all shards, channel by channel.
   in: rows, weight, mean, var; out: table; dim: channels, rows, values of a row; number: eps */
CUDA_BODY void batch_norm_backward_slope_map(const struct cuda_args *a, int64_t i) {
    const float *rows = (const float *)a->in[0];
    int64_t channels = a->dim[0], n = a->dim[1], width = a->dim[2];
    const double sums[2] = {cuda_tree_sum(rows, n, width, i), cuda_tree_sum(rows, n, width, channels + i)};
    cuda_norm_slope(a->out[0], i, sums, cuda_tree_sum(rows, n, width, 2 * channels),
                    (double)cuda_load(a, 1, i), (double)cuda_load(a, 2, i), (double)cuda_load(a, 3, i),
                    (double)a->number[0]);
}
