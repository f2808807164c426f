/* With s = smoothing, top = max x, log_sum = log of the sum of exp(x - top), both over the K classes of an image:
   p = exp(x - top) / sum, loss = (1 - s) (log_sum - (x[label] - top)) + s (log_sum - mean of (x - top));
   NaN where the label is no class.
   in: logits, labels (i64); out: losses (or NULL), p (or NULL), losses again; dim: K; number: s */
CUDA_BODY void cross_entropy_row(const struct cuda_args *a, int64_t row, struct cuda_team team) {
    int64_t classes = a->dim[0], first = row * classes, label = cuda_integers(a, 1)[row];
    float top = -INFINITY, smoothing = a->number[0];
    double sum = 0, below = 0;
    for (int64_t k = team.lane; k < classes; k += team.size)
        top = fmaxf(top, cuda_load(a, 0, first + k));
    top = cuda_team_max(team, top);
    for (int64_t k = team.lane; k < classes; k += team.size) {
        float d = cuda_load(a, 0, first + k) - top;
        sum += (double)expf(d);
        below += (double)d;
    }
    sum = cuda_team_sum(team, sum);
    below = cuda_team_sum(team, below);
    for (int64_t k = team.lane; k < classes && a->out[1]; k += team.size)
        cuda_store(a, 1, first + k, expf(cuda_load(a, 0, first + k) - top) * (float)(1 / sum));
    if (team.lane != 0)
        return;
    double log_sum = log(sum), loss = NAN;
    if (label >= 0 && label < classes)
        loss = (1 - (double)smoothing) * (log_sum - (double)(cuda_load(a, 0, first + label) - top));
    if (smoothing > 0)
        loss += (double)smoothing * (log_sum - below / (double)classes);
    if (a->out[0])
        cuda_store(a, 0, row, (float)loss);
    cuda_store(a, 2, row, (float)loss);
}
