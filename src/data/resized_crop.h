/* The random resized crop of Szegedy et al., "Going deeper with convolutions", 2015, as torchvision's RandomResizedCrop
   draws it: a window of random area and shape, which is then resized to the size of the network's input. */
#ifndef CVY_DATA_RESIZED_CROP_H
#define CVY_DATA_RESIZED_CROP_H

#include "base/rng.h"
#include "data/data.h"

/* The window: its area a fraction of the image's between 0.08 and 1, its width / height between 3/4 and 4/3, uniform
   in the logarithm; after ten draws that do not fit, the largest window in the centre with a shape within these. */
struct cvy_box cvy_draw_resized_crop(struct cvy_rng *rng, int64_t height, int64_t width);

#endif
