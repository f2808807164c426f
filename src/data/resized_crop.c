/* Invariant: a box that is drawn lies within its image and is not empty. */
#include "data/resized_crop.h"

#include <math.h>

enum { N_TRIES = 10 };
static const double min_area = 0.08, max_area = 1, min_ratio = 3.0 / 4,
                    max_ratio = 4.0 / 3; /* width / height */

static struct cvy_box centre_box(int64_t height, int64_t width) {
    double ratio = (double)width / (double)height;
    struct cvy_box box = {.height = height, .width = width};
    if (ratio < min_ratio)
        box.height = (int64_t)rint((double)width / min_ratio);
    else if (ratio > max_ratio)
        box.width = (int64_t)rint((double)height * max_ratio);
    box.height = box.height > height ? height : box.height;
    box.width = box.width > width ? width : box.width;
    box.top = (height - box.height) / 2;
    box.left = (width - box.width) / 2;
    return box;
}

struct cvy_box cvy_draw_resized_crop(struct cvy_rng *rng, int64_t height, int64_t width) {
    for (int i = 0; i < N_TRIES; i++) {
        double area = (double)height * (double)width * cvy_rng_between(rng, min_area, max_area);
        double ratio = exp(cvy_rng_between(rng, log(min_ratio), log(max_ratio)));
        struct cvy_box box = {.height = (int64_t)rint(sqrt(area / ratio)),
                              .width = (int64_t)rint(sqrt(area * ratio))};
        if (box.height < 1 || box.width < 1 || box.height > height || box.width > width)
            continue;
        box.top = cvy_rng_below(rng, (uint32_t)(height - box.height + 1));
        box.left = cvy_rng_below(rng, (uint32_t)(width - box.width + 1));
        return box;
    }
    return centre_box(height, width);
}
