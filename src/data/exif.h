/* Which way up a photograph is: the tag Orientation of EXIF (CIPA DC-008), as cameras and telephones write it. */
#ifndef CVY_DATA_EXIF_H
#define CVY_DATA_EXIF_H

#include "data/data.h"

#include <stddef.h>

/* 1 to 8: what the EXIF segment of a JPEG file says; 1, as it lies, when there is none or it makes no sense. */
int cvy_exif_orientation(const void *jpeg, size_t n_bytes);

/* Turns and mirrors the image (u8 NHWC) so that it is upright: what Pillow's ImageOps.exif_transpose does. */
cvy_status cvy_orient(struct cvy_image *image, int orientation);

/* Where a box of the upright image lies in the stored one, which is height x width. */
struct cvy_box cvy_orient_back(const struct cvy_box *upright, int orientation, int64_t height, int64_t width);
/* Does upright mean that width and height change places? */
static inline bool cvy_orient_swaps(int orientation) { return orientation >= 5; }

#endif
