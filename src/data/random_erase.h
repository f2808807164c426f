/* Random erasing (Zhong et al., "Random erasing data augmentation", 2017) as torchvision's RandomErasing draws it. */
#ifndef CVY_DATA_RANDOM_ERASE_H
#define CVY_DATA_RANDOM_ERASE_H

#include "data/resized_crop.h"

/* With probability p a box: its area a fraction of the image's between 0.02 and 0.33, its height / width between
   0.3 and 3.3, uniform in the logarithm. Without pixels when nothing is erased: by chance, or after ten draws of
   boxes that are not smaller than the image on both sides. */
struct cvy_box cvy_draw_random_erase(struct cvy_rng *rng, double p, int64_t height, int64_t width);

/* Fills the box with what becomes 0 after the normalisation, as torchvision's script erases normalised images: the
   mean, in u8 images the nearest level to it. */
void cvy_erase(const struct cvy_image *image, const struct cvy_box *box, const float *mean);

#endif
