/* batch_norm_moments: the row of a shard. Threads share the channels out, then the images; the calling thread puts
   their parts together. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/moments.h"
#include "base/mem.h"
#include "ops/batch_norm.h"

#include <stdlib.h>
#include <string.h>

struct moments_kernel {
    struct cvy_kernel base;
    struct cpu_view view;
    struct cpu_grid grid;
    /* of the present run */
    const cpu_real *x;
    struct cpu_moments *parts; /* [image_part][block], in the workspace */
};

static void run_part(void *context, int part, int n_parts) {
    const struct moments_kernel *me = context;
    struct cpu_cell cell = cpu_grid_cell(&me->grid, &me->view, part);
    (void)n_parts;
    for (struct cpu_cell p = cell; cpu_cell_group(&p, &cell, &me->view); p.first_block = p.end_block)
        cpu_moments_cell(me->x, &me->view, &p, &me->parts[cell.image_part * me->view.n_blocks]);
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct moments_kernel *me = (struct moments_kernel *)kernel;
    const struct cpu_view *v = &me->view;
    float *row = out[0];
    me->x = in[0];
    me->parts = scratch;
    cpu_team_run(cpu_grid_parts(&me->grid), run_part, me);
    memset(row, 0, (size_t)cvy_batch_norm_row(v->channels) * sizeof *row);
    for (int64_t b = 0; b < v->n_blocks; b++) {
        int n_channels = cpu_n_channels(v, b);
        struct cpu_moments all = {0};
        for (int i = 0; i < me->grid.image_parts; i++)
            cpu_moments_merge(&all, &me->parts[i * v->n_blocks + b], n_channels);
        for (int l = 0; l < n_channels; l++) {
            row[cpu_first_channel(v, b) + l] = (float)all.mean[l];
            row[v->channels + cpu_first_channel(v, b) + l] = (float)all.m2[l];
        }
    }
    row[2 * v->channels] = (float)(v->n * v->pixels);
    row[2 * v->channels + 1] = (float)v->n;
    return CVY_OK;
}

static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cpu_choose_view(call, 0);
    call->out[0].layout = NULL;
    return CVY_OK;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    struct moments_kernel *me;
    struct cpu_view view;
    struct cpu_grid grid;
    CVY_TRY(cpu_grid_of(device, call, 0, &view, &grid));
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = &CPU_REAL(cpu_kernel_batch_norm_moments);
    me->view = view;
    me->grid = grid;
    *scratch_bytes = (size_t)(me->grid.image_parts * me->view.n_blocks) * sizeof(struct cpu_moments);
    *out = &me->base;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

const struct cvy_kernel_impl CPU_REAL(cpu_kernel_batch_norm_moments) = {
    .op = "batch_norm_moments",
    .supports = CPU_SUPPORTS_REAL,
    .choose = choose,
    .prepare = prepare,
    .run = run,
    .release = release,
};
