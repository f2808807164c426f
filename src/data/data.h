/* Data sets: one file per format, one line in formats.def. A format opens a spec and hands out samples. */
#ifndef CVY_DATA_DATA_H
#define CVY_DATA_DATA_H

#include "base/log.h"
#include "base/status.h"

#include <stdbool.h>

/* A decoded image, rows of interleaved or planar channels. */
struct cvy_image {
    int64_t channels, height, width;
    cvy_dtype dtype; /* CVY_U8 or CVY_F32 */
    cvy_image_order order;
    void *pixels; /* owned by the struct; capacity grows and is reused across calls */
    size_t capacity;
};
enum { CVY_IMAGE_SLACK = 64 }; /* bytes behind the pixels that may be read and written */
/* Gives the image a shape and room for it; the old pixels are lost. CVY_ERR_DATA: negative size, or overflow. */
cvy_status cvy_image_reshape(struct cvy_image *image, int64_t channels, int64_t height, int64_t width,
                             cvy_dtype dtype, cvy_image_order order);
void cvy_image_free(struct cvy_image *image); /* the pixels; the struct is the caller's */

struct cvy_box { /* pixels of an image */
    int64_t top, left, height, width;
};
/* Keeps the box, which lies within the image. */
void cvy_image_crop(struct cvy_image *image, const struct cvy_box *box);

/* The part of an image that is wanted, chosen once its size is known (of the upright image). */
struct cvy_image_part {
    struct cvy_box (*choose)(void *context, int64_t height, int64_t width);
    void *context;
    int64_t height,
        width; /* at least so large it shall come: a larger one may come at 1/2, 1/4 or 1/8 of its size */
};
void cvy_image_take(struct cvy_image *image,
                    const struct cvy_image_part *part); /* keeps the part, at its size */

struct cvy_format;
struct cvy_text;

struct cvy_dataset { /* the head of every format's own struct */
    const struct cvy_format *format;
    char *spec;
    cvy_split split;
    int64_t n, n_classes;
    char **class_names;              /* n_classes, owned */
    bool as_stored;                  /* photographs are not turned upright; whoever opened it may set it */
    bool is_unlabelled;              /* nothing but images: n_classes is 0, label is never called */
    int64_t channels, height, width; /* height and width 0 when they vary */
    cvy_dtype dtype;                 /* of every image: CVY_U8 or CVY_F32 */
    cvy_image_order order;
    const char *preset;        /* what suits it: "none", "cifar" */
    float mean[4], std[4];     /* what suits it; std 0: not said */
    _Atomic bool is_abandoned; /* see cvy_dataset_abandon */
};

struct cvy_format {
    const char *prefix; /* "folder" for folder:DIR; "digits" */
    const char *help;   /* "folder:DIR   class folders, with train/ and val/ or test/ below if there" */
    /* `argument` is what stands behind the colon ("" when nothing does). Fills the head but for format, spec
       and split, which the caller sets. After a failure the caller frees what *out holds, if it was set. */
    cvy_status (*open)(const char *argument, cvy_split split, const cvy_log_sink *log,
                       struct cvy_dataset **out);
    /* Everything but spec and class_names, which cvy_dataset_free releases before. */
    void (*free)(struct cvy_dataset *dataset);
    /* One of these two, the other is NULL; thread-safe. CVY_ERR_DATA names the sample and the reason.
       The image file of sample i as it is, freed by the caller. */
    cvy_status (*encoded)(const struct cvy_dataset *dataset, int64_t i, char **out, size_t *n_bytes);
    /* The pixels of sample i; `image` is a worker's own. */
    cvy_status (*pixels)(const struct cvy_dataset *dataset, int64_t i, struct cvy_image *image);
    cvy_status (*label)(const struct cvy_dataset *dataset, int64_t i, int64_t *out);
    /* The file that holds sample i alone. NULL: there is none. */
    const char *(*path)(const struct cvy_dataset *dataset, int64_t i);
    /* What messages call sample i. NULL: its path, or else the data set and its number. */
    void (*name)(const struct cvy_dataset *dataset, int64_t i, struct cvy_text *out);
    /* CVY_ERR_USAGE: what is written to the folder `dir` would be read as samples. NULL: never. */
    cvy_status (*check_output)(const char *argument, const char *dir);
    bool finds_files; /* samples are the files that are there: one that is moved away is none any more */
};

const struct cvy_format *const *cvy_format_table(size_t *n); /* of formats.def */
/* The format that a spec "PREFIX:ARGUMENT" names; NULL: none. */
const struct cvy_format *cvy_format_find(const char *spec);

/* Sample i, or the part of it, of which little more is decoded; thread-safe (a worker's own `image`). CVY_ERR_DATA
   names the sample and the reason. */
cvy_status cvy_dataset_read(const struct cvy_dataset *dataset, int64_t i, const struct cvy_image_part *part,
                            struct cvy_image *image);
/* CVY_ERR_USAGE: what a run writes to `dir`, which need not be there yet, would be read as samples of `spec`. Local. */
cvy_status cvy_dataset_check_output(const char *spec, const char *dir);
/* What messages call sample i. */
void cvy_dataset_name(const struct cvy_dataset *dataset, int64_t i, struct cvy_text *out);
/* Puts it in front of the newest error; returns the error's status. */
cvy_status cvy_dataset_name_error(const struct cvy_dataset *dataset, int64_t i, cvy_status status);
/* CVY_ERR_LOST: sample i was not there after so long, which names it. */
cvy_status cvy_dataset_fail_late(const struct cvy_dataset *dataset, int64_t i, double seconds);
/* A thread that reads from it does not come back: from now on cvy_dataset_free leaves it as it is. */
void cvy_dataset_abandon(const struct cvy_dataset *dataset);
/* Label of sample i; CVY_ERR_DATA when it is no class. */
cvy_status cvy_dataset_label(const struct cvy_dataset *dataset, int64_t i, int64_t *out);

/* For formats: class names "0", "1", … for n classes; sets n_classes. */
cvy_status cvy_dataset_number_classes(struct cvy_dataset *dataset, int64_t n);
/* For formats: the classes of these names, which are copied; sets n_classes. */
cvy_status cvy_dataset_name_classes(struct cvy_dataset *dataset, const char *const *names, size_t n);
/* For formats of image files: RGB of any size, normalised as torchvision's ImageNet models expect. */
void cvy_dataset_set_rgb(struct cvy_dataset *dataset);
/* Frees spec and class_names. */
void cvy_dataset_clear(struct cvy_dataset *dataset);

#endif
