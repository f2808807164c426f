/* tensors:FILE.safetensors: `images`, float32 N,C,H,W, taken as they lie, and `labels`, int64 N, 0 .. classes - 1.
   Without labels the set is good for predictions only. Both splits are the whole file: whoever wants others
   writes two files. The number of classes is the metadata's num_classes, or the largest label + 1. */
#include "base/mem.h"
#include "base/text.h"
#include "data/data.h"
#include "graph/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct tensor_set {
    struct cvy_dataset head;
    struct cvy_safetensors *file;
    const unsigned char *images, *labels; /* mapped, at any alignment; labels NULL: none */
};

static struct tensor_set *set_of(const struct cvy_dataset *dataset) { return (struct tensor_set *)dataset; }

static void tensors_free(struct cvy_dataset *dataset) {
    cvy_safetensors_free(set_of(dataset)->file);
    free(dataset);
}

static cvy_status fail_desc(const char *path, const char *name, const struct cvy_desc *desc,
                            const char *wanted) {
    struct cvy_text text = {0};
    char *found;
    cvy_desc_print(&text, desc);
    CVY_TRY(cvy_text_take(&text, &found));
    cvy_status status =
        CVY_FAIL(CVY_ERR_DATA, "%s: tensor '%s' is %s, it must be %s", path, name, found, wanted);
    free(found);
    return status;
}

static cvy_status find_images(struct tensor_set *set, const char *path) {
    struct cvy_desc desc;
    const void *bytes;
    CVY_TRY(cvy_safetensors_find(set->file, "images", &desc, &bytes));
    if (desc.dtype != CVY_F32 || desc.shape.n != 4)
        return fail_desc(path, "images", &desc, "f32[N,C,H,W]");
    if (cvy_shape_count(&desc.shape) == 0)
        return fail_desc(path, "images", &desc, "at least one image of at least one pixel");
    set->images = bytes;
    set->head.n = desc.shape.dim[0];
    set->head.channels = desc.shape.dim[1];
    set->head.height = desc.shape.dim[2];
    set->head.width = desc.shape.dim[3];
    return CVY_OK;
}

static int64_t label_of(const struct tensor_set *set, int64_t i) {
    int64_t label;
    memcpy(&label, set->labels + (size_t)i * sizeof label, sizeof label);
    return label;
}

/* Finds and checks the labels; sets the number of classes. */
static cvy_status find_labels(struct tensor_set *set, const char *path) {
    enum { MAX_CLASSES = 1000000 }; /* more is a label gone wrong */
    struct cvy_desc desc;
    const void *bytes;
    int64_t largest = 0, n_classes;
    CVY_TRY(cvy_safetensors_find(set->file, "labels", &desc, &bytes));
    if (desc.dtype != CVY_I64 || desc.shape.n != 1 || desc.shape.dim[0] != set->head.n)
        return fail_desc(path, "labels", &desc, "i64[N], one for each image");
    set->labels = bytes;
    for (int64_t i = 0; i < set->head.n; i++) {
        int64_t label = label_of(set, i);
        if (label < 0 || label >= MAX_CLASSES)
            return CVY_FAIL(CVY_ERR_DATA, "%s: label %lld of image %lld: must be 0 to %d", path,
                            (long long)label, (long long)i, MAX_CLASSES - 1);
        largest = label > largest ? label : largest;
    }
    const char *said = cvy_safetensors_metadata(set->file, "num_classes");
    n_classes = largest + 1;
    if (said && (!cvy_parse_i64(said, &n_classes) || n_classes <= largest || n_classes > MAX_CLASSES))
        return CVY_FAIL(CVY_ERR_DATA, "%s: the metadata say num_classes '%s', the largest label is %lld",
                        path, said, (long long)largest);
    CVY_TRY(cvy_dataset_number_classes(&set->head, n_classes));
    return CVY_OK;
}

static cvy_status open_file(struct tensor_set *set, const char *path) {
    if (!*path)
        return CVY_FAIL(CVY_ERR_USAGE, "data 'tensors:': name the file, as in tensors:FILE.safetensors");
    CVY_TRY(cvy_safetensors_open(path, &set->file));
    CVY_TRY(find_images(set, path));
    set->head.is_unlabelled = !cvy_safetensors_has(set->file, "labels");
    if (!set->head.is_unlabelled)
        CVY_TRY(find_labels(set, path));
    return CVY_OK;
}

static cvy_status tensors_open(const char *argument, cvy_split split, const cvy_log_sink *log,
                               struct cvy_dataset **out) {
    (void)split, (void)log;
    struct tensor_set *set;
    CVY_TRY(CVY_ALLOC(set, 1));
    set->head = (struct cvy_dataset){.dtype = CVY_F32, .order = CVY_NCHW, .preset = "none"};
    *out = &set->head;
    CVY_TRY(open_file(set, argument));
    return CVY_OK;
}

static cvy_status tensors_read(const struct cvy_dataset *dataset, int64_t i, struct cvy_image *image) {
    size_t n_bytes = (size_t)(dataset->channels * dataset->height * dataset->width) * sizeof(float);
    CVY_TRY(cvy_image_reshape(image, dataset->channels, dataset->height, dataset->width, CVY_F32, CVY_NCHW));
    memcpy(image->pixels, set_of(dataset)->images + (size_t)i * n_bytes, n_bytes);
    const float *pixels = image->pixels;
    for (size_t k = 0; k < n_bytes / sizeof *pixels; k++) {
        if (!isfinite(pixels[k]))
            return CVY_FAIL(CVY_ERR_DATA, "'%s': image %lld holds %g: every value must be finite",
                            dataset->spec, (long long)i, (double)pixels[k]);
    }
    return CVY_OK;
}

static cvy_status tensors_label(const struct cvy_dataset *dataset, int64_t i, int64_t *out) {
    *out = label_of(set_of(dataset), i);
    return CVY_OK;
}

const struct cvy_format cvy_format_tensors = {
    .prefix = "tensors",
    .help = "tensors:FILE.safetensors   images (float32 N,C,H,W) and labels (int64 N), taken as they lie",
    .open = tensors_open,
    .free = tensors_free,
    .pixels = tensors_read,
    .label = tensors_label,
};
