/* Data sets and loaders. See convoy.h. */
#ifndef CONVOY_DATA_H
#define CONVOY_DATA_H

#include <convoy/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cvy_dataset cvy_dataset;
typedef struct cvy_loader cvy_loader;

typedef enum { CVY_SPLIT_TRAIN, CVY_SPLIT_VAL } cvy_split;

/* Opens one split of a data spec, such as digits, folder:DIR or csv:FILE; `convoy data` lists the formats. `log` may
   be NULL; it is used during the call. CVY_ERR_USAGE: the spec is wrong; CVY_ERR_DATA: what it names is missing or
   wrong. Local. */
CVY_API cvy_status cvy_dataset_open(const char *spec, cvy_split split, const cvy_log_sink *log,
                                    cvy_dataset **out);
/* n image files (JPEG, PNG, WebP) without labels, in this order, as `convoy predict` reads them. They are opened when
   a loader reads them. CVY_ERR_USAGE: n < 1. Local. */
CVY_API cvy_status cvy_dataset_open_files(const char *const *paths, int64_t n, cvy_dataset **out);
CVY_API void cvy_dataset_free(cvy_dataset *dataset);
/* Images. */
CVY_API int64_t cvy_dataset_size(const cvy_dataset *dataset);
/* Classes: labels are 0 … this - 1. 0 where there are no labels. */
CVY_API int64_t cvy_dataset_classes(const cvy_dataset *dataset);
/* Name of class k, the data set's own; NULL when there is no such class. */
CVY_API const char *cvy_dataset_class_name(const cvy_dataset *dataset, int64_t k);
/* Natural size of an image; 0 for height and width when the images' sizes vary. */
CVY_API void cvy_dataset_image_size(const cvy_dataset *dataset, int64_t *channels, int64_t *height,
                                    int64_t *width);

typedef enum { CVY_NCHW, CVY_NHWC } cvy_image_order;

/* Plain images and labels of one global batch. A loader's are its own, valid until its next cvy_loader_next or
   cvy_loader_start; one that a program makes must be there during each call that it is given to. */
typedef struct cvy_batch {
    int64_t n, channels, height, width; /* at most 4 channels */
    int64_t n_update;      /* training: images of all batches of the update which this one belongs to; 0: n */
    cvy_dtype dtype;       /* CVY_U8 (0 to 255) or CVY_F32 */
    cvy_image_order order; /* of the images' memory, which has no gaps */
    const void *images;
    const int64_t *labels;  /* n, or NULL where none are needed */
    const int64_t *indices; /* n: position of each image in its data set; for the caller's use, may be NULL */
    float mean[4], std[4];  /* the device computes (x / 255 (u8 only) - mean) / std; std 0 counts as 1 */
} cvy_batch;

typedef struct {
    int64_t batch_size; /* global, at least 1 */
    int64_t accumulate; /* batches of one update; at the end of an epoch there may be fewer; 0: 1 */
    int workers;        /* decoding threads, which work up to two batches ahead; 0: in the calling thread */
    uint64_t seed;
    bool shuffle, augment; /* augment: training transforms, else evaluation's */
    const char *preset;    /* of augmentation: "none", "cifar", "imagenet"; NULL: what suits the data */
    int64_t resize;        /* shorter side (u8 images); 0: none, or the crop's longer side where sizes vary */
    int64_t crop[2];       /* height, width of what comes out, from the centre; 0: resize, else all */
    int64_t pad;           /* training crops at random after this zero padding; -1: the preset's */
    int flip;              /* training mirrors with probability 1/2: 1, 0, or -1: the preset's */
    float color_jitter[4]; /* of training, ranges: brightness, contrast, saturation, hue (to 0.5); 0: none */
    const char *auto_augment; /* of training: "ra", "ta_wide"; NULL: none */
    int ra_magnitude;         /* of "ra", 0 to 30 */
    double random_erase;      /* training sets a random box to the mean with this probability, 0 to 1 */
    bool has_mean_std;        /* false: what suits the data, else mean 0 and std 1 */
    float mean[4], std[4];
    int64_t channels; /* 1: u8 images in colour become grey (ITU-R 601); 0: as they are */
} cvy_loader_options;
/* The defaults, to begin with (not all are 0): batches of 32, 2 workers, shuffled, augmented as suits the data. */
CVY_API void cvy_loader_defaults(cvy_loader_options *options);
/* `dataset` must outlive the loader. No batch is larger than the set. CVY_ERR_USAGE: an option does not fit the
   data, or `augment` and the batch is larger than the set; CVY_ERR_DATA: there is nothing to train on. Local. */
CVY_API cvy_status cvy_loader_new(const cvy_dataset *dataset, const cvy_loader_options *options,
                                  cvy_loader **out);
CVY_API void cvy_loader_free(cvy_loader *loader);
/* Image shape of every batch. */
CVY_API void cvy_loader_shape(const cvy_loader *loader, int64_t *channels, int64_t *height, int64_t *width);
/* Starts epoch e (0, 1, …), also in the middle of another: order and augmentation are functions of (seed, e) and
   the images' numbers alone. Without a start the loader is at an end. CVY_ERR_USAGE: e is negative. */
CVY_API cvy_status cvy_loader_start(cvy_loader *loader, int64_t epoch);
/* CVY_OK and a batch, or CVY_END: check which of the two ended your loop. The last batch of an epoch may be
   smaller. CVY_ERR_DATA names the file or the sample that is wrong, the first of the batch whatever the workers;
   CVY_ERR_LOST: a worker did not come back from an image for two minutes. */
CVY_API cvy_status cvy_loader_next(cvy_loader *loader, cvy_batch *out);

#ifdef __cplusplus
}
#endif
#endif
