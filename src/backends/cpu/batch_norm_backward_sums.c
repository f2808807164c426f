/* batch_norm_backward_sums: the row of a shard, and its part of the gradients of weight and bias. Threads share the
   channels out, then the images; the calling thread puts their parts together. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/norm_backward.h"
#include "base/mem.h"
#include "ops/batch_norm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DY, X, MEAN, VAR, MASK };
enum { ROW, DWEIGHT, DBIAS };

struct sums_kernel {
    struct cvy_kernel base;
    struct cvy_batch_norm_attrs attrs;
    struct cpu_view view;
    struct cpu_grid grid;
    int n_in;
    /* of the present run */
    struct cpu_norm_tensors tensors;
    const float *mean;
    struct cpu_norm_sums *parts; /* [image_part][block], in the workspace */
};

static void run_part(void *context, int part, int n_parts) {
    const struct sums_kernel *me = context;
    struct cpu_cell cell = cpu_grid_cell(&me->grid, &me->view, part);
    (void)n_parts;
    for (struct cpu_cell p = cell; cpu_cell_group(&p, &cell, &me->view); p.first_block = p.end_block)
        cpu_norm_sums_cell(&me->tensors, me->mean, &me->view, &p,
                           &me->parts[cell.image_part * me->view.n_blocks]);
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct sums_kernel *me = (struct sums_kernel *)kernel;
    const struct cpu_view *v = &me->view;
    const float *var = in[VAR];
    float *row = out[ROW], *dweight = out[DWEIGHT], *dbias = out[DBIAS];
    me->tensors = (struct cpu_norm_tensors){.dy = in[DY],
                                            .x = in[X],
                                            .mask = me->attrs.relu && me->n_in > MASK ? in[MASK] : NULL,
                                            .is_plain = v->lanes == 1};
    me->mean = in[MEAN];
    me->parts = scratch;
    cpu_team_run(cpu_grid_parts(&me->grid), run_part, me);
    if (row)
        memset(row, 0, (size_t)cvy_batch_norm_row(v->channels) * sizeof *row);
    for (int64_t b = 0; b < v->n_blocks; b++) {
        struct cpu_norm_sums all;
        cpu_norm_sums_join(me->parts, v, me->grid.image_parts, b, &all);
        for (int l = 0; l < cpu_n_channels(v, b); l++) {
            int64_t c = cpu_first_channel(v, b) + l;
            if (row) {
                row[c] = (float)all.u[l];
                row[v->channels + c] = (float)all.ud[l];
            }
            if (dbias)
                dbias[c] = (float)all.u[l];
            if (dweight)
                dweight[c] = (float)(all.ud[l] / sqrt((double)var[c] + me->attrs.eps));
        }
    }
    if (row)
        row[2 * v->channels] = (float)(v->n * v->pixels);
    return CVY_OK;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    struct sums_kernel *me;
    struct cpu_view view;
    struct cpu_grid grid;
    CVY_TRY(cpu_grid_of(device, call, X, &view, &grid));
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = &CPU_REAL(cpu_kernel_batch_norm_backward_sums);
    me->attrs = *(const struct cvy_batch_norm_attrs *)call->attrs;
    me->n_in = call->n_in;
    me->view = view;
    me->grid = grid;
    *scratch_bytes = (size_t)(me->grid.image_parts * me->view.n_blocks) * sizeof(struct cpu_norm_sums);
    *out = &me->base;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

const struct cvy_kernel_impl CPU_REAL(cpu_kernel_batch_norm_backward_sums) = {
    .op = "batch_norm_backward_sums",
    .supports = CPU_SUPPORTS_REAL,
    .choose = cpu_norm_backward_choose,
    .prepare = prepare,
    .run = run,
    .release = release,
};
