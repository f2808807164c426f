/* The table of distortions; those of geometry, which are all warps. */
#include "data/distort.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cvy_status identity(struct cvy_image *image, struct cvy_image *spare, double amount) {
    (void)image, (void)spare, (void)amount;
    return CVY_OK;
}

/* By way of the angle in degrees, as torchvision, which turns a last bit. */
static double slope(double amount) {
    const double degree = acos(-1) / 180;
    return tan(atan(amount) / degree * degree);
}

static cvy_status shear_x(struct cvy_image *image, struct cvy_image *spare, double amount) {
    CVY_TRY(cvy_warp(image, spare, (double[6]){1, slope(amount), 0, 0, 1, 0}));
    return CVY_OK;
}

static cvy_status shear_y(struct cvy_image *image, struct cvy_image *spare, double amount) {
    CVY_TRY(cvy_warp(image, spare, (double[6]){1, 0, 0, slope(amount), 1, 0}));
    return CVY_OK;
}

/* Whole pixels; the share of one that rounding took away does not count. */
static double whole(double amount) { return trunc(amount + copysign(1e-4, amount)); }

static cvy_status translate_x(struct cvy_image *image, struct cvy_image *spare, double amount) {
    CVY_TRY(cvy_warp(image, spare, (double[6]){1, 0, -whole(amount), 0, 1, 0}));
    return CVY_OK;
}

static cvy_status translate_y(struct cvy_image *image, struct cvy_image *spare, double amount) {
    CVY_TRY(cvy_warp(image, spare, (double[6]){1, 0, 0, 0, 1, -whole(amount)}));
    return CVY_OK;
}

/* To 15 digits, as Pillow rounds sines, which makes right angles exact. */
static double round_digits(double x) {
    char digits[32];
    snprintf(digits, sizeof digits, "%.15f", x);
    return strtod(digits, NULL);
}

/* About the centre. */
static cvy_status rotate(struct cvy_image *image, struct cvy_image *spare, double amount) {
    const double degrees = fmod(fmod(amount, 360) + 360, 360);
    if (degrees == 0)
        return CVY_OK;
    const double angle = -degrees * (acos(-1) / 180);
    const double c = round_digits(cos(angle)), s = round_digits(sin(angle));
    const double x = (double)image->width / 2, y = (double)image->height / 2;
    const double m[6] = {c, s, -c * x - s * y + x, -s, c, s * x - c * y + y};
    CVY_TRY(cvy_warp(image, spare, m));
    return CVY_OK;
}

static const struct cvy_distortion table[] = {
    {"Identity", identity},
    {"ShearX", shear_x},
    {"ShearY", shear_y},
    {"TranslateX", translate_x},
    {"TranslateY", translate_y},
    {"Rotate", rotate},
    {"Brightness", cvy_brightness},
    {"Color", cvy_color},
    {"Contrast", cvy_contrast},
    {"Sharpness", cvy_sharpness},
    {"Posterize", cvy_posterize},
    {"Solarize", cvy_solarize},
    {"AutoContrast", cvy_auto_contrast},
    {"Equalize", cvy_equalize},
    {"Hue", cvy_hue},
};

const struct cvy_distortion *cvy_distortion_find(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    }
    return NULL;
}
