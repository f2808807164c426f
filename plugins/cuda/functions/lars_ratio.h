/* ratio = trust_coefficient |param| / (|grad| + weight_decay |param| + eps); 1 where one of the norms is 0, and without
   weight decay. All of the parameter is one row.
   in: param, grad; out: ratio; number: as lars, then 3 trust_coefficient, 4 eps */
CUDA_BODY void lars_ratio_value(const struct cuda_args *a, int64_t row, int64_t k, float *values) {
    float param = cuda_load(a, 0, k), grad = cuda_load(a, 1, k);
    (void)row;
    values[0] = param * param;
    values[1] = grad * grad;
}

CUDA_BODY void lars_ratio_finish(const struct cuda_args *a, int64_t row, const double *sums) {
    double param = sqrt(sums[0]), grad = sqrt(sums[1]), decay = (double)a->number[2];
    bool is_adapted = decay != 0 && param > 0 && grad > 0;
    double ratio =
        is_adapted ? (double)a->number[3] * param / (grad + decay * param + (double)a->number[4]) : 1;
    cuda_store(a, 0, row, (float)ratio);
}
