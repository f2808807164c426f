/* Decoding of image files to RGB, 8 bits, rows of interleaved channels: what Pillow's convert("RGB") gives, turned
   upright when EXIF says how. */
#ifndef CVY_DATA_DECODE_H
#define CVY_DATA_DECODE_H

#include "data/data.h"

enum { CVY_MAX_FILE_BYTES = 1 << 29 }; /* of an image file */
enum { CVY_MAX_PIXELS = 100000000 };   /* width x height of an image file; more is taken for an attack */

/* Decodes by content, whatever the name said. `image` becomes u8 NHWC with 3 channels; its buffer is reused.
   CVY_ERR_DATA says what is wrong, without the file's name. */
cvy_status cvy_decode(const void *bytes, size_t n_bytes, int64_t max_pixels, struct cvy_image *image);

/* The same for a file of at most CVY_MAX_PIXELS; the error begins with the path. */
cvy_status cvy_decode_file(const char *path, struct cvy_image *image);

/* The decoders; called by cvy_decode when the content begins as theirs does. */
cvy_status cvy_decode_jpeg(const void *bytes, size_t n_bytes, int64_t max_pixels, struct cvy_image *image);
cvy_status cvy_decode_png(const void *bytes, size_t n_bytes, int64_t max_pixels, struct cvy_image *image);
cvy_status cvy_decode_webp(const void *bytes, size_t n_bytes, int64_t max_pixels, struct cvy_image *image);

/* For decoders: gives the image its shape and room, or refuses the size. */
cvy_status cvy_decode_reserve(int64_t width, int64_t height, int64_t max_pixels, struct cvy_image *image);

#endif
