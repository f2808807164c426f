/* Samples of one size that lie in arrays of bytes: what cifar10:, cifar100: and idx: make. */
#ifndef CVY_DATA_ARRAYS_H
#define CVY_DATA_ARRAYS_H

#include "data/data.h"

#include <stddef.h>

enum { CVY_MAX_ARRAYS = 8 };

struct
    cvy_array { /* n samples; image i is at images + i image_stride, as planes of channels, its label is one byte */
    const uint8_t *images, *labels;
    size_t image_stride, label_stride;
    int64_t n;
};

struct cvy_array_set {
    struct cvy_dataset head;
    int n_arrays;
    struct cvy_array arrays[CVY_MAX_ARRAYS];
    struct cvy_bytes { /* whole files, owned: mapped, or allocated */
        void *data;
        size_t n;
        bool is_mapped;
    } files[CVY_MAX_ARRAYS];
    int n_files;
};

/* An empty set of images of 8 bits. */
cvy_status cvy_array_set_new(int64_t channels, int64_t height, int64_t width, struct cvy_array_set **out);

/* A whole file, which the set keeps until it is freed; mapped, or inflated when it is a gzip file of at most
   `max_bytes` of content. CVY_ERR_DATA says what is wrong, with the path. */
cvy_status cvy_array_set_load(struct cvy_array_set *set, const char *path, size_t max_bytes,
                              const uint8_t **bytes, size_t *n_bytes);

/* Appends samples to the set. */
void cvy_array_set_add(struct cvy_array_set *set, const struct cvy_array *array);

/* The slots of struct cvy_format. */
void cvy_array_set_free(struct cvy_dataset *dataset);
cvy_status cvy_array_set_read(const struct cvy_dataset *dataset, int64_t i, struct cvy_image *image);
cvy_status cvy_array_set_label(const struct cvy_dataset *dataset, int64_t i, int64_t *out);

#endif
