/* See auto_augment.h. */
#include "data/auto_augment.h"

#include <math.h>
#include <string.h>

/* The amount at the strongest magnitude, to which the others rise in equal steps. */
static const struct axis {
    const char *name;
    double ra, ta_wide;
    bool is_signed; /* to either side, by chance */
    enum { LINEAR, OF_SIDE, BITS, FALLING } kind;
} axes[] = {
    {"Identity", 0, 0, false, LINEAR},
    {"ShearX", 0.3, 0.99, true, LINEAR},
    {"ShearY", 0.3, 0.99, true, LINEAR},
    {"TranslateX", 150.0 / 331, 32, true, OF_SIDE}, /* RandAugment: a share of the side */
    {"TranslateY", 150.0 / 331, 32, true, OF_SIDE},
    {"Rotate", 30, 135, true, LINEAR},
    {"Brightness", 0.9, 0.99, true, LINEAR},
    {"Color", 0.9, 0.99, true, LINEAR},
    {"Contrast", 0.9, 0.99, true, LINEAR},
    {"Sharpness", 0.9, 0.99, true, LINEAR},
    {"Posterize", 4, 6, false, BITS}, /* bits of 8 that go */
    {"Solarize", 255, 255, false, FALLING},
    {"AutoContrast", 0, 0, false, LINEAR},
    {"Equalize", 0, 0, false, LINEAR},
};
enum { N_AXES = sizeof axes / sizeof *axes, RA_OPS = 2 };

cvy_status cvy_auto_augment_find(const char *name, enum cvy_auto_augment *out) {
    *out = CVY_AUTO_NONE;
    if (!name || !*name)
        return CVY_OK;
    *out = strcmp(name, "ra") == 0        ? CVY_AUTO_RA
           : strcmp(name, "ta_wide") == 0 ? CVY_AUTO_TA_WIDE
                                          : CVY_AUTO_NONE;
    return *out != CVY_AUTO_NONE
               ? CVY_OK
               : CVY_FAIL(CVY_ERR_USAGE, "automatic augmentation '%s' is unknown, say 'ra' or 'ta_wide'",
                          name);
}

bool cvy_auto_augment_op(enum cvy_auto_augment policy, int op, int magnitude, int64_t height, int64_t width,
                         const char **name, double *amount, bool *is_signed) {
    if (op < 0 || op >= N_AXES)
        return false;
    const struct axis *axis = &axes[op];
    const double share = (double)magnitude / (CVY_MAGNITUDES - 1);
    const double most = policy == CVY_AUTO_RA ? axis->ra : axis->ta_wide;
    *name = axis->name;
    *is_signed = axis->is_signed;
    *amount = most * share;
    if (axis->kind == OF_SIDE && policy == CVY_AUTO_RA)
        *amount *= (double)(strcmp(axis->name, "TranslateX") == 0 ? width : height);
    else if (axis->kind == BITS)
        *amount = 8 - rint(most * share);
    else if (axis->kind == FALLING)
        *amount = most - most * share;
    return true;
}

cvy_status cvy_auto_augment(enum cvy_auto_augment policy, int magnitude, struct cvy_rng *rng,
                            struct cvy_image *image, struct cvy_image *spare) {
    const int n_ops = policy == CVY_AUTO_NONE ? 0 : policy == CVY_AUTO_RA ? RA_OPS : 1;
    for (int k = 0; k < n_ops; k++) {
        const char *name = "Identity";
        double amount = 0;
        bool is_signed = false;
        int op = (int)cvy_rng_below(rng, N_AXES);
        int at = policy == CVY_AUTO_RA ? magnitude : (int)cvy_rng_below(rng, CVY_MAGNITUDES);
        (void)cvy_auto_augment_op(policy, op, at, image->height, image->width, &name, &amount, &is_signed);
        if (is_signed && cvy_rng_below(rng, 2))
            amount = -amount;
        CVY_TRY(cvy_distortion_find(name)->apply(image, spare, amount));
    }
    return CVY_OK;
}

cvy_status cvy_color_jitter(const float ranges[4], struct cvy_rng *rng, struct cvy_image *image,
                            struct cvy_image *spare) {
    static const char *const names[] = {"Brightness", "Contrast", "Color", "Hue"};
    enum { N = 4, HUE = 3 };
    int order[N] = {0, 1, 2, 3};
    double amounts[N];
    for (int i = N - 1; i > 0; i--) {
        int j = (int)cvy_rng_below(rng, (uint32_t)i + 1), swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
    for (int i = 0; i < N; i++) {
        double low = i == HUE || ranges[i] < 1 ? -(double)ranges[i] : -1, high = (double)ranges[i];
        amounts[i] = cvy_rng_between(rng, low, high);
    }
    for (int i = 0; i < N; i++) {
        if (ranges[order[i]] > 0)
            CVY_TRY(cvy_distortion_find(names[order[i]])->apply(image, spare, amounts[order[i]]));
    }
    return CVY_OK;
}
