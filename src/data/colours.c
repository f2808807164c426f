/* Brightness, saturation, contrast, sharpness and hue: a blend of the image with one that lacks the quality,
   without + factor (image - without), factor = 1 + amount. */
#include "data/distort.h"

#include "data/grey.h"

#include <math.h>
#include <string.h>

/* In single precision and cut off to a level, as Pillow's blend. */
static uint8_t blend(int without, int level, float factor) {
    float mixed = (float)without + factor * (float)(level - without);
    return mixed <= 0 ? 0 : mixed >= 255 ? 255 : (uint8_t)mixed;
}

static int64_t n_pixels(const struct cvy_image *image) { return image->height * image->width; }

static void blend_with(struct cvy_image *image, int without, double amount) {
    uint8_t *levels = image->pixels;
    for (int64_t i = 0; i < 3 * n_pixels(image); i++)
        levels[i] = blend(without, levels[i], (float)(1 + amount));
}

cvy_status cvy_brightness(struct cvy_image *image, struct cvy_image *spare, double amount) {
    (void)spare;
    blend_with(image, 0, amount);
    return CVY_OK;
}

/* Without contrast there is the mean of the greys alone. */
cvy_status cvy_contrast(struct cvy_image *image, struct cvy_image *spare, double amount) {
    (void)spare;
    const uint8_t *rgb = image->pixels;
    int64_t sum = 0;
    for (int64_t i = 0; i < n_pixels(image); i++)
        sum += cvy_grey(rgb + 3 * i);
    blend_with(image, (int)((double)sum / (double)n_pixels(image) + 0.5), amount);
    return CVY_OK;
}

cvy_status cvy_color(struct cvy_image *image, struct cvy_image *spare, double amount) {
    (void)spare;
    uint8_t *rgb = image->pixels;
    for (int64_t i = 0; i < n_pixels(image); i++, rgb += 3) {
        int grey = cvy_grey(rgb);
        for (int c = 0; c < 3; c++)
            rgb[c] = blend(grey, rgb[c], (float)(1 + amount));
    }
    return CVY_OK;
}

/* ---- sharpness ------------------------------------------------------------------------------------------- */

/* The mean of a pixel, 5 times, and its 8 neighbours; `row` is in levels. */
static uint8_t smooth(const uint8_t *at, int64_t row) {
    static const float edge = 1.0F / 13, middle = 5.0F / 13;
    float sum = 0.5F;
    sum += (float)at[row - 3] * edge + (float)at[row] * edge + (float)at[row + 3] * edge;
    sum += (float)at[-3] * edge + (float)at[0] * middle + (float)at[3] * edge;
    sum += (float)at[-row - 3] * edge + (float)at[-row] * edge + (float)at[-row + 3] * edge;
    return sum >= 255 ? 255 : (uint8_t)sum;
}

/* Without sharpness the image is smooth; its outermost pixels stay. */
cvy_status cvy_sharpness(struct cvy_image *image, struct cvy_image *spare, double amount) {
    const int64_t row = image->width * 3;
    CVY_TRY(cvy_image_reshape(spare, 3, image->height, image->width, CVY_U8, CVY_NHWC));
    memcpy(spare->pixels, image->pixels, (size_t)(image->height * row));
    for (int64_t y = 1; y + 1 < image->height; y++) {
        const uint8_t *from = (const uint8_t *)spare->pixels + y * row;
        uint8_t *to = (uint8_t *)image->pixels + y * row;
        for (int64_t j = 3; j < row - 3; j++)
            to[j] = blend(smooth(from + j, row), from[j], (float)(1 + amount));
    }
    return CVY_OK;
}

/* ---- hue ------------------------------------------------------------------------------------------------- */

static int level_of(double share) {
    int level = (int)(share * 255);
    return level < 0 ? 0 : level > 255 ? 255 : level;
}

/* Hue, saturation and value, of 8 bits each. */
static void to_hsv(const uint8_t *rgb, uint8_t *hsv) {
    const int r = rgb[0], g = rgb[1], b = rgb[2];
    const int most = r > g ? (r > b ? r : b) : (g > b ? g : b),
              least = r < g ? (r < b ? r : b) : (g < b ? g : b);
    hsv[0] = hsv[1] = 0;
    hsv[2] = (uint8_t)most;
    if (most == least)
        return;
    const float range = (float)(most - least);
    const float rc = (float)(most - r) / range, gc = (float)(most - g) / range,
                bc = (float)(most - b) / range;
    const float h = r == most ? bc - gc : (float)(g == most ? 2.0 + rc - bc : 4.0 + gc - rc);
    hsv[0] = (uint8_t)level_of((float)fmod(h / 6.0 + 1, 1));
    hsv[1] = (uint8_t)level_of(range / (float)most);
}

static uint8_t nearest(double level) {
    level = round(level);
    return level < 0 ? 0 : level > 255 ? 255 : (uint8_t)level;
}

static void to_rgb(const uint8_t *hsv, uint8_t *rgb) {
    const float h = (float)(hsv[0] * 6.0 / 255), s = (float)(hsv[1] / 255.0), v = (float)hsv[2];
    const int sector = (int)floorf(h);
    const float f = h - (float)sector;
    const uint8_t top = hsv[2], p = nearest(v * (1.0 - s)), q = nearest(v * (1.0 - s * f)),
                  t = nearest(v * (1.0 - s * (1.0 - f)));
    const uint8_t sectors[6][3] = {{top, t, p}, {q, top, p}, {p, top, t},
                                   {p, q, top}, {t, p, top}, {top, p, q}};
    memcpy(rgb, sectors[sector % 6], 3);
}

cvy_status cvy_hue(struct cvy_image *image, struct cvy_image *spare, double amount) {
    (void)spare;
    const uint8_t turn = (uint8_t)(int)(amount * 255); /* modulo 256 */
    uint8_t *rgb = image->pixels;
    for (int64_t i = 0; i < n_pixels(image); i++, rgb += 3) {
        uint8_t hsv[3];
        to_hsv(rgb, hsv);
        hsv[0] = (uint8_t)(hsv[0] + turn);
        to_rgb(hsv, rgb);
    }
    return CVY_OK;
}
