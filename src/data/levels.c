/* Distortions that map each channel's levels by a table. */
#include "data/distort.h"

#include <string.h>

enum { LEVELS = 256 };

static int64_t n_pixels(const struct cvy_image *image) { return image->height * image->width; }

static void map_levels(struct cvy_image *image, int first, int end, const uint8_t map[LEVELS]) {
    uint8_t *rgb = image->pixels;
    for (int64_t i = 0; i < n_pixels(image); i++, rgb += 3) {
        for (int c = first; c < end; c++)
            rgb[c] = map[rgb[c]];
    }
}

static void count_levels(const struct cvy_image *image, int channel, int64_t counts[LEVELS]) {
    const uint8_t *rgb = image->pixels;
    memset(counts, 0, LEVELS * sizeof *counts);
    for (int64_t i = 0; i < n_pixels(image); i++)
        counts[rgb[3 * i + channel]]++;
}

cvy_status cvy_posterize(struct cvy_image *image, struct cvy_image *spare, double amount) {
    (void)spare;
    const int bits = amount < 0 ? 0 : amount > 8 ? 8 : (int)amount;
    uint8_t map[LEVELS];
    for (int level = 0; level < LEVELS; level++)
        map[level] = (uint8_t)(level & ~((1 << (8 - bits)) - 1));
    map_levels(image, 0, 3, map);
    return CVY_OK;
}

cvy_status cvy_solarize(struct cvy_image *image, struct cvy_image *spare, double amount) {
    (void)spare;
    uint8_t map[LEVELS];
    for (int level = 0; level < LEVELS; level++)
        map[level] = (uint8_t)(level < amount ? level : 255 - level);
    map_levels(image, 0, 3, map);
    return CVY_OK;
}

/* The darkest level becomes 0, the lightest 255. */
cvy_status cvy_auto_contrast(struct cvy_image *image, struct cvy_image *spare, double amount) {
    (void)spare, (void)amount;
    for (int c = 0; c < 3; c++) {
        int64_t counts[LEVELS];
        int low = 0, high = LEVELS - 1;
        uint8_t map[LEVELS];
        count_levels(image, c, counts);
        while (low < LEVELS - 1 && counts[low] == 0)
            low++;
        while (high > 0 && counts[high] == 0)
            high--;
        if (high <= low)
            continue;
        const double scale = 255.0 / (high - low), offset = -low * scale;
        for (int level = 0; level < LEVELS; level++) {
            int to = (int)(level * scale + offset);
            map[level] = (uint8_t)(to < 0 ? 0 : to > 255 ? 255 : to);
        }
        map_levels(image, c, c + 1, map);
    }
    return CVY_OK;
}

/* Every level as often as every other, as far as that goes. */
cvy_status cvy_equalize(struct cvy_image *image, struct cvy_image *spare, double amount) {
    (void)spare, (void)amount;
    for (int c = 0; c < 3; c++) {
        int64_t counts[LEVELS], n_used = 0, last = 0;
        uint8_t map[LEVELS];
        count_levels(image, c, counts);
        for (int level = 0; level < LEVELS; level++) {
            n_used += counts[level] > 0;
            last = counts[level] > 0 ? counts[level] : last;
        }
        const int64_t step = (n_pixels(image) - last) / 255;
        if (n_used <= 1 || step == 0)
            continue;
        int64_t n = step / 2;
        for (int level = 0; level < LEVELS; level++) {
            map[level] = (uint8_t)(n / step > 255 ? 255 : n / step);
            n += counts[level];
        }
        map_levels(image, c, c + 1, map);
    }
    return CVY_OK;
}
