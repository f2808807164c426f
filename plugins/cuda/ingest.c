/* Images of the loader to the input tensor: copied to the device as they are, then converted, normalised and laid out
   by one launch. The copies go by a stream of their own, so that those of the next shard go on while this one is
   computed: there are two places for them, and each is filled again when the launch that reads it is over. */
#include "cuda.h"
#include "launch.h"
#include "layout.h"

#include "base/mem.h"

#include <string.h>

void cuda_inputs_close(struct cuda_device *me) {
    for (int k = 0; k < CUDA_N_INPUTS; k++) {
        if (me->inputs[k].is_there)
            (void)cudaEventDestroy(me->inputs[k].is_there);
        if (me->inputs[k].is_read)
            (void)cudaEventDestroy(me->inputs[k].is_read);
    }
    (void)cudaFree(me->images);
    memset(me->inputs, 0, sizeof me->inputs);
    me->images = NULL;
    me->image_bytes = 0;
}

static size_t place_bytes(size_t n_bytes) { return cvy_align_up(n_bytes, 256); }

size_t cuda_input_bytes(const struct cvy_desc *images) {
    return CUDA_N_INPUTS * place_bytes((size_t)cvy_shape_count(&images->shape) * sizeof(float));
}

static cvy_status reserve(struct cuda_device *me, size_t n_bytes) {
    if (me->image_bytes >= n_bytes)
        return CVY_OK;
    /* Giving memory back and getting some may wait for the device, and then for ever. In the middle of a step messages
       are under way: only the first of some stages has images, and nobody needs more of it to receive what it sent. */
    CVY_TRY(cuda_wait_all(me));
    cuda_inputs_close(me);
    n_bytes = place_bytes(n_bytes);
    TRY_CUDA(me, cudaMalloc(&me->images, CUDA_N_INPUTS * n_bytes));
    for (int k = 0; k < CUDA_N_INPUTS; k++) {
        TRY_CUDA(me, cudaEventCreateWithFlags(&me->inputs[k].is_there, cudaEventDisableTiming));
        TRY_CUDA(me, cudaEventCreateWithFlags(&me->inputs[k].is_read, cudaEventDisableTiming));
    }
    me->image_bytes = n_bytes;
    return CVY_OK;
}

/* The present stream goes on when they are there. An event that was never recorded is over. */
static cvy_status bring(struct cuda_device *me, const struct cuda_input *input, void *to, const void *host,
                        size_t n_bytes) {
    const int stream = me->stream;
    TRY_CUDA(me, cudaStreamWaitEvent(me->streams[CUDA_STREAM_COPY], input->is_read, 0));
    me->stream = CUDA_STREAM_COPY;
    cvy_status status = cuda_send(me, to, host, n_bytes);
    me->stream = stream;
    CVY_TRY(status);
    TRY_CUDA(me, cudaEventRecord(input->is_there, me->streams[CUDA_STREAM_COPY]));
    TRY_CUDA(me, cudaStreamWaitEvent(cuda_stream(me), input->is_there, 0));
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
    const uint64_t place = me->n_ingested++ % CUDA_N_INPUTS;
    const struct cuda_input *input = &me->inputs[place];
    void *images = (char *)me->images + place * me->image_bytes;
    CVY_TRY(bring(me, input, images, from, (size_t)n * item));
    struct cuda_args args = {.in = {images},
                             .out = {to},
                             .dim = {0, batch->channels, pixels, batch->order == CVY_NHWC,
                                     batch->dtype == CVY_U8, to_spec->layout == cuda_nhwc}};
    for (int c = 0; c < (int)batch->channels; c++) {
        args.number[c] = batch->mean[c];
        args.number[4 + c] = batch->std[c];
    }
    const struct cuda_range ranges[] = {{images, (size_t)n * item, false},
                                        {to, cuda_layout_bytes(to_spec->layout, &to_spec->desc), true}};
    CVY_TRY(cuda_launch(me, &(struct cuda_launch){.function = CUDA_ingest,
                                                  .name = "ingest",
                                                  .args = &args,
                                                  .n = n,
                                                  .n_ranges = 2,
                                                  .ranges = ranges}));
    TRY_CUDA(me, cudaEventRecord(input->is_read, cuda_stream(me)));
    return CVY_OK;
}
