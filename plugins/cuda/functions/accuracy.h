/* Of an image, how many classes score above its label; of equal scores the lower class does. A label that is no class,
   and a row with a NaN, gets a rank behind all.
   in: scores, labels (i64); out: ranks (i32, or NULL), ranks as floats; dim: K, the rank behind all */
CUDA_BODY void accuracy_row(const struct cuda_args *a, int64_t row, struct cuda_team team) {
    int64_t classes = a->dim[0], first = row * classes, label = cuda_integers(a, 1)[row];
    bool is_class = label >= 0 && label < classes;
    float own = is_class ? cuda_load(a, 0, first + label) : 0;
    double above = 0, wrong = 0; /* exact: they are counts */
    for (int64_t k = team.lane; k < classes; k += team.size) {
        float score = cuda_load(a, 0, first + k);
        above += score > own || (score == own && k < label);
        wrong += isnan(score) ? 1 : 0;
    }
    above = cuda_team_sum(team, above);
    wrong = cuda_team_sum(team, wrong);
    int32_t rank = (int32_t)(is_class && wrong == 0 ? above : (double)a->dim[1]);
    if (team.lane != 0)
        return;
    if (a->out[0])
        ((int32_t *)a->out[0])[row] = rank;
    cuda_store(a, 1, row, (float)rank);
}
