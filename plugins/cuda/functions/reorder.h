/* The same tensor in another layout, element by element of the output.
   dim: channels C and pixels P of an image; 1 when the output is N,H,W,C (its input N,C,H,W), else 0; bytes of an
   element */
CUDA_BODY void reorder_map(const struct cuda_args *a, int64_t i) {
    int64_t channels = a->dim[0], pixels = a->dim[1], image = channels * pixels;
    int64_t n = i / image, at = i % image;
    int64_t from = n * image + (a->dim[2] ? at % channels * pixels + at / channels
                                          : at % pixels * channels + at / pixels);
    if (a->dim[3] == 1)
        ((uint8_t *)a->out[0])[i] = ((const uint8_t *)a->in[0])[from];
    else if (a->dim[3] == 2)
        ((uint16_t *)a->out[0])[i] = ((const uint16_t *)a->in[0])[from];
    else if (a->dim[3] == 4)
        ((uint32_t *)a->out[0])[i] = ((const uint32_t *)a->in[0])[from];
    else
        ((uint64_t *)a->out[0])[i] = ((const uint64_t *)a->in[0])[from];
}
