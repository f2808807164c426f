/* The grey of a colour, as Pillow's convert("L"): ITU-R 601 in 16-bit fractions that add up to 1, rounded. */
#ifndef CVY_DATA_GREY_H
#define CVY_DATA_GREY_H

#include <stdint.h>

enum { CVY_LUMA_R = 19595, CVY_LUMA_G = 38470, CVY_LUMA_B = 7471, CVY_LUMA_ONE = 1 << 16 };

static inline uint8_t cvy_grey(const uint8_t *rgb) {
    return (uint8_t)((CVY_LUMA_R * rgb[0] + CVY_LUMA_G * rgb[1] + CVY_LUMA_B * rgb[2] + CVY_LUMA_ONE / 2) /
                     CVY_LUMA_ONE);
}

#endif
