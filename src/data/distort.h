/* Distortions of images as Pillow makes them for torchvision's RandAugment, TrivialAugmentWide and ColorJitter, to the
   level. Images are u8 NHWC with 3 channels and are changed in place. */
#ifndef CVY_DATA_DISTORT_H
#define CVY_DATA_DISTORT_H

#include "data/data.h"

/* What `amount` means: ShearX, ShearY a pixel's shift by row or column; TranslateX, TranslateY pixels; Rotate degrees
   counter-clockwise; Brightness, Color, Contrast, Sharpness what is added to the factor 1 of ImageEnhance; Posterize
   bits that stay; Solarize the first level that is inverted; Hue a share of the circle; others none. */
struct cvy_distortion {
    const char *name; /* torchvision's */
    /* `spare` is working memory. */
    cvy_status (*apply)(struct cvy_image *image, struct cvy_image *spare, double amount);
};

const struct cvy_distortion *cvy_distortion_find(const char *name); /* NULL: there is none */

/* warp.c: pixel (x, y) comes from (a x + b y + c, d x + e y + f), m = {a, b, c, d, e, f}, of pixels' centres;
   bilinear, black outside. */
cvy_status cvy_warp(struct cvy_image *image, struct cvy_image *spare, const double m[6]);

/* colours.c */
cvy_status cvy_brightness(struct cvy_image *image, struct cvy_image *spare, double amount);
cvy_status cvy_color(struct cvy_image *image, struct cvy_image *spare, double amount);
cvy_status cvy_contrast(struct cvy_image *image, struct cvy_image *spare, double amount);
cvy_status cvy_sharpness(struct cvy_image *image, struct cvy_image *spare, double amount);
cvy_status cvy_hue(struct cvy_image *image, struct cvy_image *spare, double amount);

/* levels.c */
cvy_status cvy_posterize(struct cvy_image *image, struct cvy_image *spare, double amount);
cvy_status cvy_solarize(struct cvy_image *image, struct cvy_image *spare, double amount);
cvy_status cvy_auto_contrast(struct cvy_image *image, struct cvy_image *spare, double amount);
cvy_status cvy_equalize(struct cvy_image *image, struct cvy_image *spare, double amount);

#endif
