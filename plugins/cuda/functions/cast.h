/* y = x, in another type */
CUDA_BODY void cast_map(const struct cuda_args *a, int64_t i) { cuda_store(a, 0, i, cuda_load(a, 0, i)); }
