/* How loops over N,C,H,W are cut among T threads and walked, whatever the layout. */
#ifndef CVY_CPU_GRID_H
#define CVY_CPU_GRID_H

#include "backends/cpu/vector.h"

/* Channel blocks are shared out first, since channels have nothing to do with each other; only where threads are
   left over do several share the images of a block. A function of shape, layout and T alone. */
struct cpu_grid {
    int block_parts, image_parts; /* their product is at most T */
};
struct cpu_cell { /* what one part does */
    int64_t first_block, end_block, first_image, end_image;
    int image_part;
};
struct cpu_grid cpu_grid_make(const struct cpu_view *view, int n_threads);
/* View and grid of a call's input. CVY_ERR_UNSUPPORTED names the operator whose loops know no such layout. */
cvy_status cpu_grid_of(const struct cvy_device *device, const struct cvy_call *call, int input,
                       struct cpu_view *view, struct cpu_grid *grid);
static inline int cpu_grid_parts(const struct cpu_grid *g) { return g->block_parts * g->image_parts; }
struct cpu_cell cpu_grid_cell(const struct cpu_grid *grid, const struct cpu_view *view, int part);

enum {
    CPU_CHUNK = 1024
}; /* pixels: sums are kept in single precision within a chunk, in double between chunks */

/* About CPU_CHUNK pixels of one block: a part of one image, or several whole images. Of each image, `image_step`
   floats apart: n_vectors of `width` lanes, `step` floats apart, then one of `tail` lanes. In plain layout all lanes
   are of one channel, else lane l is channel l of the block. */
struct cpu_chunk {
    int64_t at, n_images, image_step, n_vectors, step;
    int64_t n_pixels; /* of all its images */
    int width, tail;
};
/* Where a pixel holds several blocks (N,H,W,C), these are walked together, chunk by chunk: a chunk comes from memory
   once, whole lines of cache, and stays in the second-level cache for all of them. */
enum { CPU_GROUP = 16 };
/* Is there a further part of the cell, of blocks that are walked together?
   for (struct cpu_cell part = cell; cpu_cell_group(&part, &cell, view); part.first_block = part.end_block) */
static inline bool cpu_cell_group(struct cpu_cell *part, const struct cpu_cell *cell,
                                  const struct cpu_view *v) {
    int64_t left = cell->end_block - part->first_block;
    int64_t n = v->lanes > 1 && v->pixel > v->lanes ? CPU_GROUP : 1;
    part->end_block = part->first_block + (n < left ? n : left);
    return left > 0;
}
/* The pixels of `chunk`, which is of block `from`, in another block. */
static inline struct cpu_chunk cpu_chunk_in(const struct cpu_view *v, struct cpu_chunk chunk, int64_t from,
                                            int64_t block) {
    int64_t lanes = v->padded_channels - block * v->lanes;
    chunk.at += (block - from) * v->block;
    if (v->lanes > 1)
        chunk.width = (int)(lanes < v->lanes ? lanes : v->lanes);
    return chunk;
}
/* Are all vectors of the view whole ones, 16 channels each? Then the pixels of a chunk are walked in tiles, and the
   blocks of the group within a tile: memory is read once and in its order, and what a block needs is loaded once for a
   tile. */
enum { CPU_TILE = 8 }; /* pixels */
static inline bool cpu_is_tiled(const struct cpu_view *v) {
    return v->lanes == CPU_LANES && v->padded_channels % CPU_LANES == 0;
}
struct cpu_walk { /* over the chunks of a block, in order */
    const struct cpu_view *view;
    int64_t block, image, end_image, pixel;
};
static inline struct cpu_walk cpu_walk_start(const struct cpu_view *view, const struct cpu_cell *cell,
                                             int64_t block) {
    return (struct cpu_walk){view, block, cell->first_image, cell->end_image, 0};
}
bool cpu_walk_next(struct cpu_walk *walk, struct cpu_chunk *out); /* false: no more */

/* Channels of a block: the first, and how many there are (padding not counted). */
static inline int64_t cpu_first_channel(const struct cpu_view *v, int64_t block) { return block * v->lanes; }
static inline int cpu_n_channels(const struct cpu_view *v, int64_t block) {
    int64_t left = v->channels - block * v->lanes;
    return (int)(left < v->lanes ? left : v->lanes);
}

/* One value per lane from the values of a block's channels: 0 in the lanes of padding; in plain layout the one
   channel's value in every lane. */
void cpu_per_lane(const struct cpu_view *view, const float values[CPU_LANES], int n_channels, cpu_v16 *out);

#endif
