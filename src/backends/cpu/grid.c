/* Channels in blocks: see grid.h. */
#include "backends/cpu/grid.h"

struct cpu_grid cpu_grid_make(const struct cpu_view *view, int n_threads) {
    int block_parts = view->n_blocks < n_threads ? (int)view->n_blocks : n_threads;
    int image_parts = n_threads / block_parts;
    return (struct cpu_grid){block_parts, view->n < image_parts ? (int)view->n : image_parts};
}

struct cpu_cell cpu_grid_cell(const struct cpu_grid *grid, const struct cpu_view *view, int part) {
    struct cpu_cell cell = {.image_part = part / grid->block_parts};
    cpu_part(view->n_blocks, 1, part % grid->block_parts, grid->block_parts, &cell.first_block,
             &cell.end_block);
    cpu_part(view->n, 1, cell.image_part, grid->image_parts, &cell.first_image, &cell.end_image);
    return cell;
}

struct cpu_chunk cpu_chunk_at(const struct cpu_view *v, int64_t image, int64_t block, int64_t pixel) {
    struct cpu_chunk c = {.at = image * v->image + block * v->block + pixel * v->pixel};
    c.n_pixels = v->pixels - pixel < CPU_CHUNK ? v->pixels - pixel : CPU_CHUNK;
    if (v->lanes == 1) {
        c.n_vectors = c.n_pixels / CPU_LANES;
        c.tail = (int)(c.n_pixels % CPU_LANES);
        c.step = c.width = CPU_LANES;
    } else {
        int64_t left = v->padded_channels - block * v->lanes;
        c.n_vectors = c.n_pixels;
        c.step = v->pixel;
        c.width = (int)(left < v->lanes ? left : v->lanes);
    }
    return c;
}

void cpu_per_lane(const struct cpu_view *view, const float values[CPU_LANES], int n_channels, cpu_v16 *out) {
    if (view->lanes == 1)
        *out = (cpu_v16){0} + values[0];
    else
        cpu_load(out, values, n_channels);
}
