/* A tensor of images to a tensor of logits: the plainest way to hold the program against another. */
#include "cli/predict.h"
#include "graph/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cvy_status find_images(const struct cvy_safetensors *file, const char *path, struct cvy_desc *desc,
                              const void **bytes) {
    CVY_TRY(cvy_safetensors_find(file, "images", desc, bytes));
    if (desc->dtype != CVY_F32 || desc->shape.n != 4 || cvy_shape_count(&desc->shape) == 0)
        return CVY_FAIL(CVY_ERR_DATA, "%s: \"images\" must be float32 of shape N,C,H,W, with no dimension 0",
                        path);
    return CVY_OK;
}

/* All rows of logits; `path` is the file of images. */
static cvy_status check_logits(const char *path, const float *logits, int64_t n, int64_t n_classes) {
    for (int64_t i = 0; i < n; i++) {
        char image[32];
        snprintf(image, sizeof image, "image %lld", (long long)i);
        cvy_status status = predict_check(logits + i * n_classes, n_classes, image);
        if (status != CVY_OK)
            return cvy_fail_prefix(status, "%s: ", path);
    }
    return CVY_OK;
}

/* Batch after batch of images, copied to where kernels want them: at 64-byte boundaries. */
static cvy_status run_all(struct prediction *p, const struct cvy_shape *shape, const char *images,
                          float *logits) {
    int64_t n = shape->dim[0], batch_size = p->task.options.loader.batch_size;
    int64_t n_classes = p->task.options.num_classes;
    size_t image_bytes = (size_t)(shape->dim[1] * shape->dim[2] * shape->dim[3]) * sizeof(float);
    int64_t *indices = NULL;
    void *aligned = aligned_alloc(CVY_ALIGN, cvy_align_up((size_t)batch_size * image_bytes, CVY_ALIGN));
    cvy_status status = aligned ? CVY_OK : CVY_FAIL(CVY_ERR_MEMORY, "no memory for a batch of images");
    if (status == CVY_OK)
        status = CVY_ALLOC(indices, (size_t)batch_size);
    for (int64_t first = 0; first < n && status == CVY_OK; first += batch_size) {
        cvy_batch batch = {.n = n - first < batch_size ? n - first : batch_size,
                           .channels = shape->dim[1],
                           .height = shape->dim[2],
                           .width = shape->dim[3],
                           .dtype = CVY_F32,
                           .order = CVY_NCHW,
                           .images = aligned,
                           .indices = indices,
                           .std = {1, 1, 1, 1}};
        memcpy(aligned, images + (size_t)first * image_bytes, (size_t)batch.n * image_bytes);
        for (int64_t i = 0; i < batch.n; i++)
            indices[i] = first + i;
        status = cvy_evaluate(p->task.session, &batch, NULL, NULL, logits + first * n_classes);
    }
    free(aligned);
    free(indices);
    return status;
}

static cvy_status write_logits(const struct prediction *p, int64_t n, const float *logits) {
    const struct cvy_safetensor tensor = {
        .name = "logits",
        .desc = {.dtype = CVY_F32, .shape = CVY_SHAPE(n, p->task.options.num_classes)},
        .bytes = logits};
    return cvy_safetensors_write(p->flags->output_file, &tensor, 1, NULL, 0);
}

static cvy_status open_task(struct prediction *p, const struct cvy_shape *shape) {
    struct cvy_task_options *o = &p->options;
    memcpy(o->input, shape->dim + 1, sizeof o->input);
    cvy_card_complete(&p->card, o);
    if (o->loader.batch_size > shape->dim[0])
        o->loader.batch_size = shape->dim[0];
    CVY_TRY(cvy_task_open(&p->task, o, NULL));
    if (!p->task.model->is_classifier)
        return CVY_FAIL(CVY_ERR_USAGE, "model '%s' is no classifier: it has no logits", p->task.model->name);
    CVY_TRY(cvy_task_start(&p->task));
    return cvy_task_load_weights(&p->task, p->weights);
}

cvy_status predict_tensors(struct prediction *p) {
    struct cvy_safetensors *file;
    struct cvy_desc desc;
    const void *images;
    float *logits = NULL;
    CVY_TRY(cvy_safetensors_open(p->flags->input_file, &file));
    cvy_status status;
    CVY_TRY_OUT(find_images(file, p->flags->input_file, &desc, &images));
    CVY_TRY_OUT(open_task(p, &desc.shape));
    CVY_TRY_OUT(CVY_ALLOC(logits, (size_t)(desc.shape.dim[0] * p->task.options.num_classes)));
    CVY_TRY_OUT(run_all(p, &desc.shape, images, logits));
    CVY_TRY_OUT(check_logits(p->flags->input_file, logits, desc.shape.dim[0], p->task.options.num_classes));
    CVY_TRY_OUT(write_logits(p, desc.shape.dim[0], logits));
out:
    free(logits);
    cvy_safetensors_free(file);
    return status;
}
