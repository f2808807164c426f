/* layer_norm over the channels of a pixel, which is a row.     dim: channels, inner (as cuda_of_channel) */

/* Where channel c of a row lies. */
CUDA_BODY int64_t layer_norm_at(const struct cuda_args *a, int64_t row, int64_t c) {
    return cuda_of_channel(a, c, row);
}

/* y = (x - mean) rstd weight + bias, rstd = 1 / sqrt(var + eps); the mean is taken first.
   in: x, weight, bias; out: y, mean, rstd (each may be NULL); number: eps */
CUDA_BODY void layer_norm_row(const struct cuda_args *a, int64_t row, struct cuda_team team) {
    const int64_t channels = a->dim[0];
    double sum = 0, m2 = 0;
    for (int64_t c = team.lane; c < channels; c += team.size)
        sum += (double)cuda_load(a, 0, layer_norm_at(a, row, c));
    const float mean = (float)(cuda_team_sum(team, sum) / (double)channels);
    sum = 0;
    for (int64_t c = team.lane; c < channels; c += team.size) {
        const double d = (double)(cuda_load(a, 0, layer_norm_at(a, row, c)) - mean);
        m2 += d * d;
    }
    const float rstd = (float)(1 / sqrt(cuda_team_sum(team, m2) / (double)channels + (double)a->number[0]));
    for (int64_t c = team.lane; c < channels && a->out[0]; c += team.size) {
        const int64_t at = layer_norm_at(a, row, c);
        cuda_store(a, 0, at, (cuda_load(a, 0, at) - mean) * rstd * cuda_load(a, 1, c) + cuda_load(a, 2, c));
    }
    if (team.lane == 0 && a->out[1])
        cuda_store(a, 1, row, mean);
    if (team.lane == 0 && a->out[2])
        cuda_store(a, 2, row, rstd);
}

/* dx = rstd (g - mean of g - v mean of g v), g = dy weight, v = (x - mean) rstd; it may lie where dy does.
   in: dy, x, mean, rstd, weight; out: dx */
CUDA_BODY void layer_norm_backward_row(const struct cuda_args *a, int64_t row, struct cuda_team team) {
    const int64_t channels = a->dim[0];
    const float mean = cuda_load(a, 2, row), rstd = cuda_load(a, 3, row);
    double sum_g = 0, sum_gv = 0;
    for (int64_t c = team.lane; c < channels; c += team.size) {
        const int64_t at = layer_norm_at(a, row, c);
        const float g = cuda_load(a, 0, at) * cuda_load(a, 4, c);
        sum_g += (double)g;
        sum_gv += (double)(g * ((cuda_load(a, 1, at) - mean) * rstd));
    }
    const float mean_g = (float)(cuda_team_sum(team, sum_g) / (double)channels);
    const float mean_gv = (float)(cuda_team_sum(team, sum_gv) / (double)channels);
    for (int64_t c = team.lane; c < channels; c += team.size) {
        const int64_t at = layer_norm_at(a, row, c);
        const float g = cuda_load(a, 0, at) * cuda_load(a, 4, c), v = (cuda_load(a, 1, at) - mean) * rstd;
        cuda_store(a, 0, at, rstd * (g - mean_g - v * mean_gv));
    }
}

/* dweight = sum of dy v, dbias = sum of dy; a row of the fold is a channel, its elements the pixels.
   in: dy, x, mean, rstd; out: dweight, dbias (each may be NULL) */
CUDA_BODY void layer_norm_backward_sums_value(const struct cuda_args *a, int64_t row, int64_t k,
                                              float *values) {
    const int64_t at = layer_norm_at(a, k, row);
    const float dy = cuda_load(a, 0, at);
    values[0] = dy * ((cuda_load(a, 1, at) - cuda_load(a, 2, k)) * cuda_load(a, 3, k));
    values[1] = dy;
}

CUDA_BODY void layer_norm_backward_sums_finish(const struct cuda_args *a, int64_t row, const double *sums) {
    for (int k = 0; k < 2; k++) {
        if (a->out[k])
            cuda_store(a, k, row, (float)sums[k]);
    }
}
