/* Policies that distort training images by chance: RandAugment (Cubuk et al., 2019) and TrivialAugmentWide (Mueller and
   Hutter, 2021) with torchvision's operations, amounts and defaults, bilinear and black outside as its reference
   script has them; and ColorJitter. */
#ifndef CVY_DATA_AUTO_AUGMENT_H
#define CVY_DATA_AUTO_AUGMENT_H

#include "base/rng.h"
#include "data/distort.h"

enum { CVY_MAGNITUDES = 31 }; /* amounts of an operation: magnitude 0 is the weakest */

enum cvy_auto_augment { CVY_AUTO_NONE, CVY_AUTO_RA, CVY_AUTO_TA_WIDE };

/* "ra" or "ta_wide"; NULL or "": none. CVY_ERR_USAGE lists them. */
cvy_status cvy_auto_augment_find(const char *name, enum cvy_auto_augment *out);

/* RandAugment: two operations of `magnitude`; TrivialAugmentWide: one of any magnitude. The image is u8 NHWC with 3
   channels, `spare` is working memory. */
cvy_status cvy_auto_augment(enum cvy_auto_augment policy, int magnitude, struct cvy_rng *rng,
                            struct cvy_image *image, struct cvy_image *spare);

/* For tests: operation `op` of the policy, and its amount for an image of height x width. False: there are fewer. */
bool cvy_auto_augment_op(enum cvy_auto_augment policy, int op, int magnitude, int64_t height, int64_t width,
                         const char **name, double *amount, bool *is_signed);

/* Brightness, contrast and saturation by factors from max(0, 1 - range) to 1 + range, hue turned by up to its range of
   the circle, in random order. ranges: {brightness, contrast, saturation, hue}; 0: not at all. */
cvy_status cvy_color_jitter(const float ranges[4], struct cvy_rng *rng, struct cvy_image *image,
                            struct cvy_image *spare);

#endif
