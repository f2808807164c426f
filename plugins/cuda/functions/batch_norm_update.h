/* running = (1 - momentum) running + momentum stats / images; counts the batch; nothing where no shard had statistics.
   in: running mean, running var, batches (i64), stats; out: the first three, in place; dim: channels; number:
   momentum */
CUDA_BODY void batch_norm_update_map(const struct cuda_args *a, int64_t i) {
    int64_t channels = a->dim[0];
    double images = (double)cuda_load(a, 3, 2 * channels), momentum = (double)a->number[0];
    if (!(images > 0))
        return;
    for (int part = 0; part < 2; part++) {
        double statistic = (double)cuda_load(a, 3, part * channels + i) / images;
        cuda_store(a, part, i,
                   (float)((1 - momentum) * (double)cuda_load(a, part, i) + momentum * statistic));
    }
    if (i == 0)
        ((int64_t *)a->out[2])[0] = cuda_integers(a, 2)[0] + 1;
}
