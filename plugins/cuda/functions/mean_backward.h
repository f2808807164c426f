/* dx[n,…] = dy[n] / elements of an image       dim: them */
CUDA_BODY void mean_backward_map(const struct cuda_args *a, int64_t i) {
    cuda_store(a, 0, i, cuda_load(a, 0, i / a->dim[0]) / (float)a->dim[0]);
}
