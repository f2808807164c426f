/* dlogits = dloss / divisor (p - (1 - s) [k = label] - s / K); NaN where the label is no class. It may lie where p
   does. in: dloss, p, labels (i64), divisor; dim: K; number: s / K, 1 - s + s / K */
CUDA_BODY void cross_entropy_backward_map(const struct cuda_args *a, int64_t i) {
    int64_t classes = a->dim[0], label = cuda_integers(a, 2)[i / classes];
    float scale = label >= 0 && label < classes ? cuda_load(a, 0, 0) / cuda_load(a, 3, 0) : NAN;
    cuda_store(a, 0, i, scale * (cuda_load(a, 1, i) - a->number[i % classes == label]));
}
