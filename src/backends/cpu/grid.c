/* Channels in blocks: see grid.h. */
#include "backends/cpu/grid.h"

struct cpu_grid cpu_grid_make(const struct cpu_view *view, int n_threads) {
    int block_parts = view->n_blocks < n_threads ? (int)view->n_blocks : n_threads;
    int image_parts = n_threads / block_parts;
    return (struct cpu_grid){block_parts, view->n < image_parts ? (int)view->n : image_parts};
}

cvy_status cpu_grid_of(const struct cvy_device *device, const struct cvy_call *call, int input,
                       struct cpu_view *view, struct cpu_grid *grid) {
    const struct cvy_operand_spec *spec = &call->in[input];
    if (!cpu_layout_view(spec->layout, &spec->desc, view))
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s: %s has no loops for this layout", device->name,
                        call->op->name);
    *grid = cpu_grid_make(view, device->spec.n_threads);
    return CVY_OK;
}

struct cpu_cell cpu_grid_cell(const struct cpu_grid *grid, const struct cpu_view *view, int part) {
    struct cpu_cell cell = {.image_part = part / grid->block_parts};
    cpu_part(view->n_blocks, 1, part % grid->block_parts, grid->block_parts, &cell.first_block,
             &cell.end_block);
    cpu_part(view->n, 1, cell.image_part, grid->image_parts, &cell.first_image, &cell.end_image);
    return cell;
}

bool cpu_walk_next(struct cpu_walk *w, struct cpu_chunk *out) {
    const struct cpu_view *v = w->view;
    if (w->image >= w->end_image)
        return false;
    int64_t left = w->end_image - w->image, pixels = v->pixels - w->pixel, n_images = 1;
    if (pixels > CPU_CHUNK)
        pixels = CPU_CHUNK;
    else if (w->pixel == 0)
        n_images = CPU_CHUNK / pixels < left ? CPU_CHUNK / pixels : left;
    *out = (struct cpu_chunk){.at = w->image * v->image + w->block * v->block + w->pixel * v->pixel,
                              .n_images = n_images,
                              .image_step = v->image,
                              .n_pixels = n_images * pixels};
    if (v->lanes == 1) {
        out->n_vectors = pixels / CPU_LANES;
        out->tail = (int)(pixels % CPU_LANES);
        out->step = out->width = CPU_LANES;
    } else {
        int64_t lanes = v->padded_channels - w->block * v->lanes;
        out->n_vectors = pixels;
        out->step = v->pixel;
        out->width = (int)(lanes < v->lanes ? lanes : v->lanes);
    }
    w->pixel += pixels;
    if (w->pixel == v->pixels) {
        w->pixel = 0;
        w->image += n_images;
    }
    return true;
}

void cpu_per_lane(const struct cpu_view *view, const float values[CPU_LANES], int n_channels, cpu_v16 *out) {
    if (view->lanes == 1)
        *out = (cpu_v16){0} + values[0];
    else
        cpu_load(out, values, n_channels);
}
