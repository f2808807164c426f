/* to = (x / 255 (bytes only) - mean[c]) / std[c], element by element of the output in its layout.
   in: the batch's images; dim: the first image in them, C, H * W; 1 when the images are N,H,W,C; 1 when they are
   bytes; 1 when the output is N,H,W,C; number: mean[4], std[4] */
CUDA_BODY void ingest_map(const struct cuda_args *a, int64_t i) {
    int64_t channels = a->dim[1], pixels = a->dim[2], image = channels * pixels;
    int64_t n = i / image, at = i % image;
    int64_t c = a->dim[5] ? at % channels : at / pixels, p = a->dim[5] ? at / channels : at % pixels;
    int64_t from = (a->dim[0] + n) * image + (a->dim[3] ? p * channels + c : c * pixels + p);
    float x = a->dim[4] ? (float)((const uint8_t *)a->in[0])[from] / 255.0f : ((const float *)a->in[0])[from];
    cuda_store(a, 0, i, (x - a->number[c]) / a->number[4 + c]);
}
