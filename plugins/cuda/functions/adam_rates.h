/* What depends on the update alone, n being its number: 1 - rate shrinks, rate / (1 - beta1^n) and
   1 / sqrt(1 - beta2^n). 1 - beta^n = -expm1(n log1p(-(1 - beta))), which loses nothing where beta is nearly 1.
   in: {rate, n}; number: as adam */
CUDA_BODY void adam_rates_map(const struct cuda_args *a, int64_t i) {
    double rate = (double)cuda_load(a, 0, 0), n = (double)cuda_load(a, 0, 1);
    double of_mean = -expm1(n * log1p(-(double)a->number[1])),
           of_square = -expm1(n * log1p(-(double)a->number[3]));
    (void)i; /* there is one */
    cuda_store(a, 0, 0, (float)(1 - rate * (double)a->number[5]));
    cuda_store(a, 0, 1, (float)(rate / of_mean));
    cuda_store(a, 0, 2, (float)(1 / sqrt(of_square)));
}
