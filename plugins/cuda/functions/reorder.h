/* The same tensor in another layout, element by element of the output.
   dim: channels C and pixels P of an image; 1 when the output is N,H,W,C (its input N,C,H,W), else 0 */
CUDA_BODY void reorder_map(const struct cuda_args *a, int64_t i) {
    int64_t channels = a->dim[0], pixels = a->dim[1], image = channels * pixels;
    int64_t n = i / image, at = i % image;
    int64_t from = a->dim[2] ? at % channels * pixels + at / channels : at % pixels * channels + at / pixels;
    cuda_store(a, 0, i, cuda_load(a, 0, n * image + from));
}
