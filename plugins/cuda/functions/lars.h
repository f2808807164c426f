/* d = ratio (grad + weight_decay param); the buffer is d at first, then momentum buffer + (1 - dampening) d; the step
   is d without momentum, d + momentum buffer with nesterov, else the buffer; param -= rate step.
   in: {rate, number of the update}, param, grad, buffer, ratio; out: param, buffer; dim: nesterov;
   number: momentum, 1 - dampening, weight_decay, and those of lars_ratio */
CUDA_BODY void lars_map(const struct cuda_args *a, int64_t i) {
    float param = cuda_load(a, 1, i), buffer = cuda_load(a, 3, i);
    float d = cuda_load(a, 4, 0) * (cuda_load(a, 2, i) + a->number[2] * param), step = d;
    if (a->number[0] != 0) {
        buffer = cuda_load(a, 0, 1) <= 1 ? d : a->number[0] * buffer + a->number[1] * d;
        step = a->dim[0] ? d + a->number[0] * buffer : buffer;
    }
    cuda_store(a, 0, i, param - cuda_load(a, 0, 0) * step);
    cuda_store(a, 1, i, buffer);
}
