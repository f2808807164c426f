/* Writing of JPEG images. */
#ifndef CVY_DATA_ENCODE_JPEG_H
#define CVY_DATA_ENCODE_JPEG_H

#include "data/data.h"

/* `image` is u8 NHWC with 3 channels, sides up to 65500. Baseline, colours at half resolution (4:2:0). The caller frees
   *out. */
cvy_status cvy_encode_jpeg(const struct cvy_image *image, int quality, unsigned char **out, size_t *n_bytes);

#endif
