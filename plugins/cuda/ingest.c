/* Images of the loader to the input tensor: copied to the device as they are, then converted, normalised and laid out
   by one launch. */
#include "cuda.h"
#include "launch.h"
#include "layout.h"

static cvy_status reserve(struct cuda_device *me, size_t n_bytes) {
    if (me->image_bytes >= n_bytes)
        return CVY_OK;
    if (me->images)
        TRY_CUDA(me, cudaFree(me->images)); /* waits for what uses it */
    me->images = NULL;
    me->image_bytes = 0;
    TRY_CUDA(me, cudaMalloc(&me->images, n_bytes));
    me->image_bytes = n_bytes;
    return CVY_OK;
}

cvy_status cuda_ingest(struct cvy_device *device, const struct cvy_ingest *what,
                       const struct cvy_operand_spec *to_spec, void *to) {
    struct cuda_device *me = cuda_device(device);
    const cvy_batch *batch = what->batch;
    CVY_TRY(cvy_ingest_check(device, what, to_spec));
    int64_t pixels = batch->height * batch->width, image = batch->channels * pixels, n = what->n * image;
    size_t item = batch->dtype == CVY_U8 ? 1 : sizeof(float);
    CVY_TRY(reserve(me, (size_t)n * item));
    const char *from = (const char *)batch->images + (size_t)(what->first * image) * item;
    TRY_CUDA(me,
             cudaMemcpyAsync(me->images, from, (size_t)n * item, cudaMemcpyHostToDevice, cuda_stream(me)));
    struct cuda_args args = {.in = {me->images},
                             .out = {to},
                             .dim = {0, batch->channels, pixels, batch->order == CVY_NHWC,
                                     batch->dtype == CVY_U8, to_spec->layout == cuda_nhwc}};
    for (int c = 0; c < (int)batch->channels; c++) {
        args.number[c] = batch->mean[c];
        args.number[4 + c] = batch->std[c];
    }
    const struct cuda_range ranges[] = {{me->images, (size_t)n * item, false},
                                        {to, cuda_layout_bytes(to_spec->layout, &to_spec->desc), true}};
    return cuda_launch(me, &(struct cuda_launch){.function = CUDA_ingest,
                                                 .name = "ingest",
                                                 .args = &args,
                                                 .n = n,
                                                 .n_ranges = 2,
                                                 .ranges = ranges});
}
