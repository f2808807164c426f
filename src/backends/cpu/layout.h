/* How a tensor lies in memory, for this backend: oneDNN's formats by oneDNN's names ("aBcd16b").
   Equal layouts are equal pointers; nobody owns them. A layout knows no shape, so that it serves every shard size.
   Names:
     TAG          a oneDNN format tag of the tensor's rank; plain row-major is no layout at all (NULL)
     gN:TAG       weights O,I,H,W of a convolution in N groups, seen as N,O/N,I,H,W
   Winograd's transformed weights, which have no tag, do not occur (see conv.c). */
#ifndef CVY_CPU_LAYOUT_H
#define CVY_CPU_LAYOUT_H

#include "graph/op.h"
#include "rt/backend.h"

#include <oneapi/dnnl/dnnl.h>

/* oneDNN's name for an element type; false: it has none. */
bool cpu_dtype(cvy_dtype dtype, dnnl_data_type_t *out);

/* 1, or those of a convolution's weights. */
int64_t cpu_layout_groups(const struct cvy_layout *layout);

/* The tensor as a layout of this one's rank sees it: a matrix O,I in a layout of convolutions' weights is O,I,1,1. */
struct cvy_desc cpu_layout_desc(const struct cvy_layout *layout, const struct cvy_desc *desc);
/* The matrix of a pointwise convolution as its weights. */
struct cvy_desc cpu_desc_of_weights(const struct cvy_desc *matrix);

/* The memory descriptor of a tensor that lies so. groups > 1 splits dimension 0 (of plain tensors too). */
cvy_status cpu_layout_md(const struct cvy_layout *layout, const struct cvy_desc *desc, int64_t groups,
                         dnnl_memory_desc_t *out);

/* The layout that a descriptor answered by oneDNN stands for: with one dimension more than the tensor when it is
   weights in groups. */
cvy_status cpu_layout_of(const dnnl_memory_desc_t *md, const struct cvy_desc *desc,
                         const struct cvy_layout **out);

/* A tensor N,C,H,W as loops see it: channels in blocks of `lanes` that lie side by side, the last block perhaps
   partial. Element (n, c, p) stands at n * image + c / lanes * block + p * pixel + c % lanes; plain N,C,H,W has
   lanes = 1 and pixel = 1. */
struct cpu_view {
    int64_t n, channels, pixels;
    int64_t lanes, image, block, pixel; /* in elements */
    int64_t n_blocks;
    int64_t padded_channels; /* channels that exist in memory: those past `channels` are zero */
};
/* False when the layout has another form. Tensors of rank 2 are seen as N,C,1,1. */
bool cpu_layout_view(const struct cvy_layout *layout, const struct cvy_desc *desc, struct cpu_view *out);

/* The backend's slots. */
size_t cpu_layout_bytes(const struct cvy_layout *layout, const struct cvy_desc *desc);
void cpu_layout_print(const struct cvy_layout *layout, struct cvy_text *out);
bool cpu_layout_find(struct cvy_device *device, const char *name, const struct cvy_layout **out);

#endif
