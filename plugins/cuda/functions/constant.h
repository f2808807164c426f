/* y = number */
CUDA_BODY void constant_map(const struct cuda_args *a, int64_t i) { cuda_store(a, 0, i, a->number[0]); }
