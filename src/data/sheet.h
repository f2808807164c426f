/* A contact sheet: images in rows, each above its name. */
#ifndef CVY_DATA_SHEET_H
#define CVY_DATA_SHEET_H

#include "data/data.h"

struct cvy_sheet {
    struct cvy_image image;                /* u8 NHWC with 3 channels; freed by cvy_image_free */
    int64_t columns, height, width, scale; /* of a cell's picture, and how often its pixels are repeated */
};

/* A white sheet for n pictures of height x width; small ones are shown larger. Local. */
cvy_status cvy_sheet_new(int64_t n, int64_t columns, int64_t height, int64_t width, struct cvy_sheet *out);

/* Picture k: height x width pixels of 3 levels. What does not fit of the name is left out; letters that the font lacks
   are boxes. */
void cvy_sheet_put(struct cvy_sheet *sheet, int64_t k, const uint8_t *rgb, const char *name);

#endif
