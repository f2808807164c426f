/* g = grad + weight_decay param; v = alpha v + (1 - alpha) g^2; buffer = momentum buffer + g / (sqrt(v) + eps);
   param -= rate buffer.
   in: {rate, number of the update}, param, grad, v, buffer; out: param, v, buffer;
   number: alpha, 1 - alpha, eps, momentum, weight_decay */
CUDA_BODY void rmsprop_map(const struct cuda_args *a, int64_t i) {
    float param = cuda_load(a, 1, i), grad = cuda_load(a, 2, i) + a->number[4] * param;
    float v = a->number[0] * cuda_load(a, 3, i) + a->number[1] * grad * grad;
    float buffer = a->number[3] * cuda_load(a, 4, i) + grad / (sqrtf(v) + a->number[2]);
    cuda_store(a, 0, i, param - cuda_load(a, 0, 0) * buffer);
    cuda_store(a, 1, i, v);
    cuda_store(a, 2, i, buffer);
}
