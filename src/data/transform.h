/* What happens to an image between the data set and the batch: grey, resize the shorter side, crop, flip, erase.
   Training crops at random, after zero padding or a window that is resized, and flips at random when asked to;
   evaluation crops the centre.
   The random choices are a function of (seed, epoch, sample index) alone. */
#ifndef CVY_DATA_TRANSFORM_H
#define CVY_DATA_TRANSFORM_H

#include "base/rng.h"
#include "data/auto_augment.h"
#include "data/resize.h"

struct cvy_transform {
    int64_t channels, height, width; /* what comes out */
    cvy_dtype dtype;
    cvy_image_order order;
    int64_t resize;        /* shorter side; 0: as it is */
    int64_t pad;           /* -1: crop the centre; else crop at random after this zero padding */
    bool flip;             /* with probability 1/2 */
    bool is_resized_crop;  /* a random window is resized to what comes out, instead of resize and pad */
    float color_jitter[4]; /* ranges, see cvy_color_jitter; on what was cropped and flipped */
    enum cvy_auto_augment auto_augment; /* after that, of ra_magnitude */
    int ra_magnitude;
    double random_erase; /* a random box becomes the mean, with this probability */
    bool to_grey;        /* from RGB, before everything else */
    float mean[4], std[4];
};

/* Fits the options to the data set; CVY_ERR_USAGE says which of them does not. */
cvy_status cvy_transform_plan(const struct cvy_dataset *dataset, const cvy_loader_options *options,
                              struct cvy_transform *out);
/* The same for square images of another size: what is resized, is resized in proportion. CVY_ERR_USAGE: side is not
   1 to that of `full`, or the images are floats. */
cvy_status cvy_transform_scale(const struct cvy_transform *full, const struct cvy_dataset *dataset,
                               int64_t side, struct cvy_transform *out);
/* Does the preset resize whatever it is given? NULL: what suits the data, which does not. */
bool cvy_preset_resizes(const char *preset);
size_t cvy_transform_bytes(const struct cvy_transform *transform); /* of one image that comes out */

/* One thread's working memory; zero-initialised is ready. */
struct cvy_transform_work {
    struct cvy_resizer resizer;
    struct cvy_image grey, resized, distorted, spare;
};
void cvy_transform_work_free(struct cvy_transform_work *work);

/* What is made of one sample: which part of the image is wanted, then what comes out. `rng` belongs to (seed, epoch,
   sample index), and is drawn from by both, in this order. */
struct cvy_transform_draw {
    const struct cvy_transform *transform;
    struct cvy_rng *rng;
};
/* Refers to *draw. False: all of the image is wanted. */
bool cvy_transform_part(struct cvy_transform_draw *draw, struct cvy_image_part *out);
/* Writes cvy_transform_bytes to `out` from the image, or from the part of it that was wanted. CVY_ERR_DATA when the
   image does not fit the plan. */
cvy_status cvy_transform_apply(const struct cvy_transform_draw *draw, struct cvy_transform_work *work,
                               const struct cvy_image *image, void *out);

#endif
