/* y = a b, of one shape */
CUDA_BODY void mul_quad(const struct cuda_args *a, int64_t i, int n) {
    struct cuda_quad_f32 left = cuda_load_quad(a, 0, i, n), right = cuda_load_quad(a, 1, i, n);
    for (int j = 0; j < CUDA_QUAD; j++)
        left.at[j] *= right.at[j];
    cuda_store_quad(a, 0, i, n, left);
}

/* y = a b, b a factor for each channel, of each image or of all         in: a, b
   dim: channels, inner (cuda_channel_of), elements of an image, 1 when each image has its own factors */
CUDA_BODY void mul_channel_quad(const struct cuda_args *a, int64_t i, int n) {
    struct cuda_quad_f32 x = cuda_load_quad(a, 0, i, n);
    struct cuda_channel here = cuda_channel_of(a, i);
    for (int j = 0; j < CUDA_QUAD && j < n; j++) {
        x.at[j] *= cuda_load(a, 1, (a->dim[3] ? (i + j) / a->dim[2] * a->dim[0] : 0) + here.c);
        here = cuda_channel_next(a, here);
    }
    cuda_store_quad(a, 0, i, n, x);
}

/* db = sum of dy a over what has one factor; a row is a factor.         in: dy, a
   dim: channels, inner, pixels, 1 when each image has its own factors */
CUDA_BODY void mul_backward_value(const struct cuda_args *a, int64_t row, int64_t k, float *values) {
    int64_t channels = a->dim[0], pixels = a->dim[2], i;
    if (!a->dim[3])
        i = cuda_of_channel(a, row, k);
    else if (a->dim[1] == 1)
        i = (row / channels * pixels + k) * channels + row % channels;
    else
        i = row * pixels + k;
    values[0] = cuda_load(a, 0, i) * cuda_load(a, 1, i);
}

CUDA_BODY void mul_backward_finish(const struct cuda_args *a, int64_t row, const double *sums) {
    cuda_store(a, 0, row, (float)sums[0]);
}
