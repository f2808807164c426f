/* d = grad + weight_decay param; buffer = momentum buffer + (1 - dampening) d, but d in the first update; the step is d
   without momentum, d + momentum buffer with nesterov, else the buffer; param -= rate step.
   in: {rate, number of the update}, param, grad, buffer; out: param, buffer; dim: 1 for nesterov;
   number: momentum, 1 - dampening, weight_decay */
CUDA_BODY void sgd_map(const struct cuda_args *a, int64_t i) {
    float momentum = a->number[0], param = cuda_load(a, 1, i), buffer = cuda_load(a, 3, i);
    float d = cuda_load(a, 2, i) + a->number[2] * param, step = d;
    if (momentum != 0) {
        buffer = cuda_load(a, 0, 1) <= 1 ? d : momentum * buffer + a->number[1] * d;
        step = a->dim[0] ? d + momentum * buffer : buffer;
    }
    cuda_store(a, 0, i, param - cuda_load(a, 0, 0) * step);
    cuda_store(a, 1, i, buffer);
}
