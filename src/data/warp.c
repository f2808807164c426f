/* Affine maps of images. The centre of pixel (i, j) lies at (j + 1/2, i + 1/2); between centres levels go linearly,
   beyond the outermost centres they stay. */
#include "data/distort.h"

#include <math.h>

struct picture {
    const uint8_t *pixels;
    int64_t height, width;
};

static int64_t clamp(int64_t i, int64_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }

static double between(double a, double b, double share) { return a + (b - a) * share; }

static void sample(const struct picture *from, double x, double y, uint8_t *rgb) {
    for (int c = 0; c < 3; c++)
        rgb[c] = 0;
    if (x < 0 || x >= (double)from->width || y < 0 || y >= (double)from->height)
        return;
    const int64_t left = (int64_t)floor(x - 0.5), top = (int64_t)floor(y - 0.5);
    const double dx = x - 0.5 - (double)left, dy = y - 0.5 - (double)top;
    const int64_t x0 = clamp(left, from->width) * 3, x1 = clamp(left + 1, from->width) * 3;
    const uint8_t *upper = from->pixels + clamp(top, from->height) * from->width * 3;
    const uint8_t *lower = from->pixels + clamp(top + 1, from->height) * from->width * 3;
    for (int c = 0; c < 3; c++) {
        double above = between(upper[x0 + c], upper[x1 + c], dx);
        double below = between(lower[x0 + c], lower[x1 + c], dx);
        rgb[c] = (uint8_t)between(above, below, dy); /* cut off, as Pillow does */
    }
}

cvy_status cvy_warp(struct cvy_image *image, struct cvy_image *spare, const double m[6]) {
    const struct cvy_image before = *image;
    const struct picture from = {image->pixels, image->height, image->width};
    CVY_TRY(cvy_image_reshape(spare, 3, image->height, image->width, CVY_U8, CVY_NHWC));
    uint8_t *to = spare->pixels;
    for (int64_t i = 0; i < from.height; i++) {
        for (int64_t j = 0; j < from.width; j++, to += 3) {
            const double x = (double)j + 0.5, y = (double)i + 0.5;
            sample(&from, m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5], to);
        }
    }
    *image = *spare;
    *spare = before;
    return CVY_OK;
}
