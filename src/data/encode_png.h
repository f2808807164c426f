/* PNG files by libspng. */
#ifndef CVY_DATA_ENCODE_PNG_H
#define CVY_DATA_ENCODE_PNG_H

#include "data/data.h"

/* The image (u8 NHWC with 3 channels) as a PNG file; *out is freed by the caller. Local. */
cvy_status cvy_encode_png(const struct cvy_image *image, void **out, size_t *n_bytes);

#endif
