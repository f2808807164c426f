/* How a tensor lies in a GPU's memory: plain row-major, or "nhwc": dimension 1 of a rank-4 tensor innermost, which is
   N,H,W,C for images and O,H,W,I for weights. */
#ifndef CONVOY_CUDA_LAYOUT_H
#define CONVOY_CUDA_LAYOUT_H

#include "rt/backend.h"

extern const struct cvy_layout *const cuda_nhwc;

size_t cuda_layout_bytes(const struct cvy_layout *layout, const struct cvy_desc *desc);
void cuda_layout_print(const struct cvy_layout *layout, struct cvy_text *out);
bool cuda_layout_find(struct cvy_device *device, const char *name, const struct cvy_layout **out);

/* A tensor as loops over images, channels and pixels see it; all dimensions behind the second are pixels. Element (n,
   c, p) stands at n * image + c * channel + p * pixel, in elements. False below rank 2. */
struct cuda_view {
    int64_t n, channels, pixels;
    int64_t image, channel, pixel;
};
bool cuda_layout_view(const struct cvy_layout *layout, const struct cvy_desc *desc, struct cuda_view *out);

/* For `choose`: all inputs and outputs of rank 4 lie as input `like` does, the others plain. */
void cuda_choose_like(struct cvy_call *call, int like);
/* ... all of rank 4 nhwc. */
void cuda_choose_nhwc(struct cvy_call *call);

#endif
