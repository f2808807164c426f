/* Channels that move: element i of y is one of x, in the same layout.
   dim: 0 channels of y, 1 inner (cuda_channel_of), then as each says */

/* Where the element of x lies that has channel c of `channels`, and everything else as element i of y. */
CUDA_BODY int64_t channels_at(const struct cuda_args *a, int64_t i, int64_t channels, int64_t c) {
    int64_t inner = a->dim[1];
    return (i / (a->dim[0] * inner) * channels + c) * inner + i % inner;
}

/* dim: 2 … 5 channels of the inputs, 0 of an absent one */
CUDA_BODY void concat_map(const struct cuda_args *a, int64_t i) {
    int64_t c = cuda_channel_of(a, i).c;
    int k = 0;
    while (c >= a->dim[2 + k])
        c -= a->dim[2 + k++];
    cuda_store(a, 0, i, cuda_load(a, k, channels_at(a, i, a->dim[2 + k], c)));
}

/* dim: 2 channels of x, 3 the first of them */
CUDA_BODY void channel_slice_map(const struct cuda_args *a, int64_t i) {
    int64_t c = cuda_channel_of(a, i).c + a->dim[3];
    cuda_store(a, 0, i, cuda_load(a, 0, channels_at(a, i, a->dim[2], c)));
}

/* dim: 2 channels of dy, 3 which of dx the first of them is */
CUDA_BODY void channel_slice_backward_map(const struct cuda_args *a, int64_t i) {
    int64_t c = cuda_channel_of(a, i).c - a->dim[3];
    bool has = c >= 0 && c < a->dim[2];
    cuda_store(a, 0, i, has ? cuda_load(a, 0, channels_at(a, i, a->dim[2], c)) : 0);
}

/* dim: 2 groups */
CUDA_BODY void channel_shuffle_map(const struct cuda_args *a, int64_t i) {
    int64_t c = cuda_channel_of(a, i).c, groups = a->dim[2], channels = a->dim[0];
    int64_t from = c % groups * (channels / groups) + c / groups;
    cuda_store(a, 0, i, cuda_load(a, 0, channels_at(a, i, channels, from)));
}
