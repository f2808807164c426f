/* digits: the bundled set of handwritten digits, embedded in the library so that a first run needs no files.
   The last 360 images are the val split, the 1,437 before them the train split.
   A value v of 0 to 16 becomes the byte round(255 v / 16), so that byte / 255 is v / 16 to within 1/510. */
#include "base/mem.h"
#include "data/data.h"

#include <stdlib.h>

enum { SIDE = 8, N_PIXELS = SIDE * SIDE, N_VAL = 360, N_CLASSES = 10 };

/* 64 letters, the label, NUL */
static const char images[][N_PIXELS + 2] = {
#include "data/digits.inc"
};

enum { N_IMAGES = sizeof images / sizeof *images };

static const char *image_of(const struct cvy_dataset *dataset, int64_t i) {
    return images[dataset->split == CVY_SPLIT_TRAIN ? i : N_IMAGES - N_VAL + i];
}

static void digits_free(struct cvy_dataset *dataset) { free(dataset); }

static cvy_status digits_open(const char *argument, cvy_split split, const cvy_log_sink *log,
                              struct cvy_dataset **out) {
    (void)log;
    if (*argument)
        return CVY_FAIL(CVY_ERR_USAGE, "data 'digits:%s': the bundled set takes no argument, say 'digits'",
                        argument);
    struct cvy_dataset *dataset;
    CVY_TRY(CVY_ALLOC(dataset, 1));
    *dataset = (struct cvy_dataset){
        .n = split == CVY_SPLIT_TRAIN ? N_IMAGES - N_VAL : N_VAL,
        .channels = 1,
        .height = SIDE,
        .width = SIDE,
        .dtype = CVY_U8,
        .order = CVY_NHWC,
        .preset = "none", /* a mirrored digit is no digit */
    };
    *out = dataset;
    CVY_TRY(cvy_dataset_number_classes(dataset, N_CLASSES));
    return CVY_OK;
}

static cvy_status digits_read(const struct cvy_dataset *dataset, int64_t i, struct cvy_image *image) {
    CVY_TRY(cvy_image_reshape(image, 1, SIDE, SIDE, CVY_U8, CVY_NHWC));
    const char *letters = image_of(dataset, i);
    uint8_t *pixels = image->pixels;
    for (int p = 0; p < N_PIXELS; p++)
        pixels[p] = (uint8_t)(((letters[p] - 'a') * 255 + 8) / 16);
    return CVY_OK;
}

static cvy_status digits_label(const struct cvy_dataset *dataset, int64_t i, int64_t *out) {
    *out = image_of(dataset, i)[N_PIXELS] - '0';
    return CVY_OK;
}

const struct cvy_format cvy_format_digits = {
    .prefix = "digits",
    .help = "digits   1,797 handwritten digits of 8x8, bundled; the last 360 are held out",
    .open = digits_open,
    .free = digits_free,
    .pixels = digits_read,
    .label = digits_label,
};
