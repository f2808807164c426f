/* m = beta1 m + (1 - beta1) grad; v = beta2 v + (1 - beta2) grad^2.
   in: rates, grad, m, v; out: m, v; number: beta1, 1 - beta1, beta2, 1 - beta2, eps, weight_decay */
CUDA_BODY void lamb_moments_map(const struct cuda_args *a, int64_t i) {
    float grad = cuda_load(a, 1, i);
    cuda_store(a, 0, i, a->number[0] * cuda_load(a, 2, i) + a->number[1] * grad);
    cuda_store(a, 1, i, a->number[2] * cuda_load(a, 3, i) + a->number[3] * grad * grad);
}
