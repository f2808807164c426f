/* Over the K classes of an image, which is a row, with s = smoothing, the target q = (1 - s) t + s / K, top = max x and
   log_sum = log of the sum of exp(x - top): p = exp(x - top) / sum, loss = sum of q (log_sum - (x - top)).
   in: logits, targets; out: losses (or NULL), p (or NULL), losses again; dim: K; number: 1 - s, s / K */
CUDA_BODY float soft_target(const struct cuda_args *a, int k, int64_t i) {
    return a->number[0] * cuda_load(a, k, i) + a->number[1];
}

CUDA_BODY void soft_cross_entropy_row(const struct cuda_args *a, int64_t row, struct cuda_team team) {
    int64_t classes = a->dim[0], first = row * classes;
    float top = -INFINITY;
    double sum = 0, weight = 0, below = 0;
    for (int64_t k = team.lane; k < classes; k += team.size)
        top = fmaxf(top, cuda_load(a, 0, first + k));
    top = cuda_team_max(team, top);
    for (int64_t k = team.lane; k < classes; k += team.size) {
        float d = cuda_load(a, 0, first + k) - top, q = soft_target(a, 1, first + k);
        sum += (double)expf(d);
        weight += (double)q;
        below += (double)q * (double)d;
    }
    sum = cuda_team_sum(team, sum);
    weight = cuda_team_sum(team, weight);
    below = cuda_team_sum(team, below);
    for (int64_t k = team.lane; k < classes && a->out[1]; k += team.size)
        cuda_store(a, 1, first + k, expf(cuda_load(a, 0, first + k) - top) * (float)(1 / sum));
    if (team.lane != 0)
        return;
    float loss = (float)(log(sum) * weight - below);
    if (a->out[0])
        cuda_store(a, 0, row, loss);
    cuda_store(a, 2, row, loss);
}

/* dlogits = dloss / divisor (p sum of q - q); it may lie where p does.
   in: dloss, p, targets, divisor; dim: K; number: 1 - s, s / K */
CUDA_BODY void soft_cross_entropy_backward_row(const struct cuda_args *a, int64_t row,
                                               struct cuda_team team) {
    int64_t classes = a->dim[0], first = row * classes;
    float scale = cuda_load(a, 0, 0) / cuda_load(a, 3, 0);
    double sum = 0;
    for (int64_t k = team.lane; k < classes; k += team.size)
        sum += (double)soft_target(a, 2, first + k);
    sum = cuda_team_sum(team, sum);
    for (int64_t k = team.lane; k < classes; k += team.size) {
        float p = cuda_load(a, 1, first + k);
        cuda_store(a, 0, first + k, scale * (p * (float)sum - soft_target(a, 2, first + k)));
    }
}
