/* batch_norm_backward_shift: dx and dresidual, in one pass, once the sums of all shards are there. Each block's
   channels are added over the rows in the tree over shards. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/norm_backward.h"
#include "base/mem.h"
#include "ops/batch_norm.h"

#include <stdlib.h>

enum { DY, X, WEIGHT, MEAN, VAR, ROWS, MASK };
enum { DX, DRESIDUAL };

struct shift_kernel {
    struct cvy_kernel base;
    struct cvy_batch_norm_attrs attrs;
    struct cpu_view view;
    struct cpu_grid grid;
    int n_in;
    int64_t n_shards;
    /* of the present run */
    struct cpu_norm_tensors tensors;
    struct cpu_norm_channels channels;
    const float *rows;
};

/* Values k .. k + n - 1 of the rows, summed in the node of `size` rows, a power of two, from `first` on. */
static void sum_rows(const struct shift_kernel *me, int64_t k, int n, int64_t first, int64_t size,
                     double out[CPU_LANES]) {
    const float *row = me->rows + first * cvy_batch_norm_row(me->view.channels) + k;
    if (size == 1) {
        for (int l = 0; l < n; l++)
            out[l] = (double)row[l];
        return;
    }
    sum_rows(me, k, n, first, size / 2, out);
    if (first + size / 2 < me->n_shards) {
        double right[CPU_LANES];
        sum_rows(me, k, n, first + size / 2, size / 2, right);
        for (int l = 0; l < n; l++)
            out[l] += right[l];
    }
}

static void settle_block(const struct shift_kernel *me, int64_t block, struct cpu_norm_slope *out) {
    const struct cpu_view *v = &me->view;
    int n_channels = cpu_n_channels(v, block);
    int64_t first = cpu_first_channel(v, block), size = 1;
    struct cpu_norm_sums sums;
    double m[CPU_LANES];
    while (size < me->n_shards)
        size *= 2;
    sum_rows(me, first, n_channels, 0, size, sums.u);
    sum_rows(me, v->channels + first, n_channels, 0, size, sums.ud);
    sum_rows(me, 2 * v->channels, 1, 0, size, m);
    cpu_norm_slope_make(&sums, m[0], &me->channels, v, block, out);
}

static void run_part(void *context, int part, int n_parts) {
    const struct shift_kernel *me = context;
    struct cpu_cell cell = cpu_grid_cell(&me->grid, &me->view, part);
    (void)n_parts;
    for (struct cpu_cell p = cell; cpu_cell_group(&p, &cell, &me->view); p.first_block = p.end_block) {
        struct cpu_norm_slope slopes[CPU_GROUP];
        for (int64_t b = p.first_block; b < p.end_block; b++)
            settle_block(me, b, &slopes[b - p.first_block]);
        cpu_norm_slope_cell(&me->tensors, slopes, &me->view, &p);
    }
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct shift_kernel *me = (struct shift_kernel *)kernel;
    (void)scratch;
    me->tensors = (struct cpu_norm_tensors){.dy = in[DY],
                                            .x = in[X],
                                            .mask = me->attrs.relu && me->n_in > MASK ? in[MASK] : NULL,
                                            .dx = out[DX],
                                            .dresidual = out[DRESIDUAL],
                                            .is_plain = me->view.lanes == 1};
    me->channels = (struct cpu_norm_channels){in[WEIGHT], in[MEAN], in[VAR], me->attrs.eps};
    me->rows = in[ROWS];
    cpu_team_run(cpu_grid_parts(&me->grid), run_part, me);
    return CVY_OK;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    struct shift_kernel *me;
    struct cpu_view view;
    struct cpu_grid grid;
    CVY_TRY(cpu_grid_of(device, call, X, &view, &grid));
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = &CPU_REAL(cpu_kernel_batch_norm_backward_shift);
    me->attrs = *(const struct cvy_batch_norm_attrs *)call->attrs;
    me->n_in = call->n_in;
    me->n_shards = call->in[ROWS].desc.shape.dim[0];
    me->view = view;
    me->grid = grid;
    *scratch_bytes = 0;
    *out = &me->base;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

const struct cvy_kernel_impl CPU_REAL(cpu_kernel_batch_norm_backward_shift) = {
    .op = "batch_norm_backward_shift",
    .supports = CPU_SUPPORTS_REAL,
    .choose = cpu_norm_backward_choose,
    .prepare = prepare,
    .run = run,
    .release = release,
};
