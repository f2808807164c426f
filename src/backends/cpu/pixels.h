/* Loops over pixels, of all images, for what needs all channels of each: tiles of neighbouring pixels that stay in
   the cache while several passes go over their channels, block by block. A tile is computed by itself, so its bits
   do not depend on T.
   A block of a tile is a strip of vectors. In plain layout a block is one channel, and a vector holds it of 16
   pixels; else a vector holds the lanes of one pixel. */
#ifndef CVY_CPU_PIXELS_H
#define CVY_CPU_PIXELS_H

#include "backends/cpu/vector.h"

enum { CPU_TILE = 16, CPU_PLAIN_TILE = 4 }; /* vectors of a strip, at most */

struct cpu_pixels {
    struct cpu_view view;
    bool is_plain;
    int64_t tiles_of_image, n_tiles;
};

struct cpu_tile {
    int64_t at;    /* its first element, in elements */
    int64_t pixel; /* its first pixel, counted over all images */
    int n;         /* vectors of a strip */
    int tail;      /* in plain layout: pixels in the last vector, if not 16, else 0 */
};

struct cpu_strip {
    int64_t at, step;  /* of the first vector; from one to the next */
    int n_whole, n;    /* vectors of 16 lanes come first */
    int width, stored; /* lanes of the others: channels (pixels) there are, and padding counted */
};

CPU_INLINE struct cpu_pixels cpu_pixels_of(const struct cpu_view *from) {
    struct cpu_view v = *from;
    if (v.lanes == 1 && v.pixels == 1) { /* channels lie side by side */
        v.lanes = v.block = CPU_LANES;
        v.pixel = v.channels;
        v.n_blocks = (v.channels + CPU_LANES - 1) / CPU_LANES;
    }
    if (v.lanes > 1 && v.pixel * v.pixels == v.image) { /* pixels lie side by side over all images */
        v.pixels *= v.n;
        v.image *= v.n;
        v.n = 1;
    }
    int64_t each = v.lanes == 1 ? CPU_PLAIN_TILE * CPU_LANES : CPU_TILE, tiles = (v.pixels + each - 1) / each;
    return (struct cpu_pixels){v, v.lanes == 1, tiles, v.n * tiles};
}

CPU_INLINE struct cpu_tile cpu_tile_of(const struct cpu_pixels *p, int64_t i) {
    const struct cpu_view *v = &p->view;
    const int64_t each = p->is_plain ? CPU_PLAIN_TILE * CPU_LANES : CPU_TILE;
    int64_t image = i / p->tiles_of_image, first = i % p->tiles_of_image * each, n = v->pixels - first;
    n = n < each ? n : each;
    struct cpu_tile tile = {image * v->image + first * v->pixel, image * v->pixels + first, (int)n, 0};
    if (p->is_plain) {
        tile.n = (int)((n + CPU_LANES - 1) / CPU_LANES);
        tile.tail = (int)(n % CPU_LANES);
    }
    return tile;
}

CPU_INLINE struct cpu_strip cpu_strip_of(const struct cpu_pixels *p, const struct cpu_tile *t,
                                         int64_t block) {
    const struct cpu_view *v = &p->view;
    const int64_t at = t->at + block * v->block;
    if (p->is_plain)
        return (struct cpu_strip){at, CPU_LANES, t->n - (t->tail > 0), t->n, t->tail, t->tail};
    int64_t width = v->channels - block * v->lanes, stored = v->padded_channels - block * v->lanes;
    width = width < v->lanes ? width : v->lanes;
    stored = stored < v->lanes ? stored : v->lanes;
    return (struct cpu_strip){at, v->pixel, width == CPU_LANES ? t->n : 0, t->n, (int)width, (int)stored};
}

/* Values of the channels (a parameter) for a strip's vectors. */
CPU_INLINE void cpu_strip_values(const struct cpu_pixels *p, const float *values, int64_t block,
                                 cpu_v16 *out) {
    const struct cpu_view *v = &p->view;
    int64_t left = v->channels - block * v->lanes;
    if (p->is_plain)
        *out = (cpu_v16){0} + values[block];
    else
        cpu_load(out, values + block * v->lanes, (int)(left < v->lanes ? left : v->lanes));
}

/* What the vectors of all strips add up to, to a sum over the channels in every lane that has a pixel. */
CPU_INLINE void cpu_pixel_sum(const struct cpu_pixels *p, cpu_v16 *sum) {
    if (!p->is_plain)
        *sum = (cpu_v16){0} + cpu_fold(sum);
}

/* Stores a number for each pixel of a tile, in its vector k. */
CPU_INLINE void cpu_pixel_store(const struct cpu_pixels *p, const struct cpu_tile *t, int k,
                                const cpu_v16 *from, float *to) {
    if (p->is_plain)
        cpu_store(to + t->pixel + k * CPU_LANES, from, t->tail && k == t->n - 1 ? t->tail : CPU_LANES);
    else
        cpu_store(to + t->pixel + k, from, 1);
}

CPU_INLINE void cpu_pixel_load(const struct cpu_pixels *p, const struct cpu_tile *t, int k, const float *from,
                               cpu_v16 *to) {
    if (p->is_plain)
        cpu_load(to, from + t->pixel + k * CPU_LANES, t->tail && k == t->n - 1 ? t->tail : CPU_LANES);
    else
        *to = (cpu_v16){0} + from[t->pixel + k];
}

#endif
