/* y = max(x, 0); NaN stays */
CUDA_BODY void relu_map(const struct cuda_args *a, int64_t i) {
    float x = cuda_load(a, 0, i);
    cuda_store(a, 0, i, x <= 0 ? 0 : x);
}
