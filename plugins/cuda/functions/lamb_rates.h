/* What depends on the update alone, n being its number: rate, 1 / (1 - beta1^n) and 1 / sqrt(1 - beta2^n); as in
   adam_rates.
   in: {rate, n}; number: as lamb_moments */
CUDA_BODY void lamb_rates_map(const struct cuda_args *a, int64_t i) {
    double n = (double)cuda_load(a, 0, 1);
    double of_mean = -expm1(n * log1p(-(double)a->number[1])),
           of_square = -expm1(n * log1p(-(double)a->number[3]));
    (void)i; /* there is one */
    cuda_store(a, 0, 0, cuda_load(a, 0, 0));
    cuda_store(a, 0, 1, (float)(1 / of_mean));
    cuda_store(a, 0, 2, (float)(1 / sqrt(of_square)));
}
