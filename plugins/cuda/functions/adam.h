/* Of adam and adamw. g = grad + joins param; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; with the
   rates {shrink, step, root}: param = shrink param - step m / (sqrt(v) root + eps).
   in: rates, param, grad, m, v; out: param, m, v; number: beta1, 1 - beta1, beta2, 1 - beta2, eps,
   shrinks, joins: the weight decay of adamw and of adam */
CUDA_BODY void adam_map(const struct cuda_args *a, int64_t i) {
    float grad = cuda_load(a, 2, i) + a->number[6] * cuda_load(a, 1, i);
    float m = a->number[0] * cuda_load(a, 3, i) + a->number[1] * grad;
    float v = a->number[2] * cuda_load(a, 4, i) + a->number[3] * grad * grad;
    float step = cuda_load(a, 0, 1) * m / (sqrtf(v) * cuda_load(a, 0, 2) + a->number[4]);
    cuda_store(a, 0, i, cuda_load(a, 0, 0) * cuda_load(a, 1, i) - step);
    cuda_store(a, 1, i, m);
    cuda_store(a, 2, i, v);
}
