/* Decoding of image files to RGB, 8 bits, rows of interleaved channels: what Pillow's convert("RGB") gives, turned
   upright when EXIF says how. */
#ifndef CVY_DATA_DECODE_H
#define CVY_DATA_DECODE_H

#include "data/data.h"

enum { CVY_MAX_FILE_BYTES = 1 << 29 }; /* of an image file */
enum { CVY_MAX_PIXELS = 100000000 };   /* width x height of an image file; more is taken for an attack */

/* Decodes by content, whatever the name said. `image` becomes u8 NHWC with 3 channels; its buffer is reused.
   `as_stored`: EXIF is passed over, as Pillow does. `part` NULL: all of it. A part has the same pixels as when it
   is cut out of the whole, unless a JPEG image comes at a fraction of its size; then the fraction is exact up to a
   pixel of it. CVY_ERR_DATA says what is wrong, without the file's name. */
cvy_status cvy_decode(const void *bytes, size_t n_bytes, int64_t max_pixels, bool as_stored,
                      const struct cvy_image_part *part, struct cvy_image *image);

/* The same for a file of at most CVY_MAX_PIXELS; the error begins with the path. */
cvy_status cvy_decode_file(const char *path, bool as_stored, const struct cvy_image_part *part,
                           struct cvy_image *image);

/* The decoders; called by cvy_decode when the content begins as theirs does. */
cvy_status cvy_decode_jpeg(const void *bytes, size_t n_bytes, int64_t max_pixels, struct cvy_image *image);
cvy_status cvy_decode_png(const void *bytes, size_t n_bytes, int64_t max_pixels, struct cvy_image *image);
/* A part of it, already upright, if the orientation of the whole is as said. */
cvy_status cvy_decode_jpeg_part(const void *bytes, size_t n_bytes, int64_t max_pixels, int orientation,
                                const struct cvy_image_part *part, struct cvy_image *image);
cvy_status cvy_decode_webp(const void *bytes, size_t n_bytes, int64_t max_pixels, struct cvy_image *image);
cvy_status cvy_decode_webp_part(const void *bytes, size_t n_bytes, int64_t max_pixels, int orientation,
                                const struct cvy_image_part *part, struct cvy_image *image);

/* For decoders: refuses the size; gives the image its shape and room, unless the size is refused. */
cvy_status cvy_decode_check(int64_t width, int64_t height, int64_t max_pixels);
cvy_status cvy_decode_reserve(int64_t width, int64_t height, int64_t max_pixels, struct cvy_image *image);

#endif
