/* See random_erase.h. */
#include "data/random_erase.h"

#include <math.h>

static const double min_area = 0.02, max_area = 0.33, min_ratio = 0.3, max_ratio = 3.3;

enum { N_TRIES = 10 };

struct cvy_box cvy_draw_random_erase(struct cvy_rng *rng, double p, int64_t height, int64_t width) {
    if (cvy_rng_uniform(rng) >= p)
        return (struct cvy_box){0};
    for (int i = 0; i < N_TRIES; i++) {
        double area = (double)height * (double)width * cvy_rng_between(rng, min_area, max_area);
        double ratio = exp(cvy_rng_between(rng, log(min_ratio), log(max_ratio)));
        struct cvy_box box = {.height = (int64_t)rint(sqrt(area * ratio)),
                              .width = (int64_t)rint(sqrt(area / ratio))};
        if (box.height >= height || box.width >= width)
            continue;
        box.top = cvy_rng_below(rng, (uint32_t)(height - box.height + 1));
        box.left = cvy_rng_below(rng, (uint32_t)(width - box.width + 1));
        return box;
    }
    return (struct cvy_box){0};
}

static uint8_t level(float mean) {
    float x = rintf(mean * 255);
    return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x);
}

void cvy_erase(const struct cvy_image *image, const struct cvy_box *box, const float *mean) {
    const bool is_nhwc = image->order == CVY_NHWC;
    for (int64_t c = 0; c < image->channels; c++) {
        for (int64_t y = box->top; y < box->top + box->height; y++) {
            for (int64_t x = box->left; x < box->left + box->width; x++) {
                int64_t at = is_nhwc ? (y * image->width + x) * image->channels + c
                                     : (c * image->height + y) * image->width + x;
                if (image->dtype == CVY_U8)
                    ((uint8_t *)image->pixels)[at] = level(mean[c]);
                else
                    ((float *)image->pixels)[at] = mean[c];
            }
        }
    }
}
