/* Bilinear resizing with antialias, bit for bit what Pillow's Image.resize(BILINEAR) does to 8-bit images (and
   therefore torchvision's Resize on them). */
#ifndef CVY_DATA_RESIZE_H
#define CVY_DATA_RESIZE_H

#include "base/vec.h"
#include "data/data.h"

struct cvy_span { /* the source pixels that one target pixel averages */
    int64_t first, n;
    size_t weights; /* where its weights begin */
};

/* Working memory, reused from image to image; zero-initialised is ready. One thread at a time. */
struct cvy_resizer {
    CVY_VEC(struct cvy_span) spans;
    CVY_VEC(int32_t) weights;
    struct cvy_image rows; /* resized horizontally */
};
void cvy_resizer_free(struct cvy_resizer *resizer);

/* `from` is u8 NHWC and not `out`, which is reshaped to height x width. */
cvy_status cvy_resize(struct cvy_resizer *resizer, const struct cvy_image *from, int64_t height,
                      int64_t width, struct cvy_image *out);

#endif
