/* The gradient of batch_norm, in two passes: sums over each channel, then dx (and dresidual).
   With u = dy behind the relu and d = x - mean:
     dbias = sum u, dweight = invstd sum u d, dresidual = u,
     dx = k (u - [training] (dbias + d invstd dweight) / m), k = weight invstd. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/norm_backward.h"
#include "base/mem.h"
#include "ops/batch_norm.h"

#include <math.h>
#include <stdlib.h>

enum { DY, X, WEIGHT, MEAN, VAR, MASK }; /* inputs */
enum { DX, DWEIGHT, DBIAS, DRESIDUAL };  /* outputs */

struct norm_backward {
    struct cvy_kernel base;
    struct cvy_batch_norm_attrs attrs;
    struct cpu_view view;
    struct cpu_grid grid;
    int n_in;
    bool has_sums, has_apply;   /* what the present pass does */
    struct cpu_norm_sums *sums; /* [image_part][block], in the workspace */
    /* of the present run; absent ones are NULL */
    struct cpu_norm_tensors tensors;
    struct cpu_norm_channels channels;
    float *dweight, *dbias;
};

/* The part that has the first images writes dweight and dbias. */
static void write_gradients(const struct norm_backward *me, const struct cpu_norm_sums *sums, int64_t block) {
    int64_t first = cpu_first_channel(&me->view, block);
    for (int l = 0; l < cpu_n_channels(&me->view, block); l++) {
        double invstd = 1 / sqrt((double)me->channels.var[first + l] + me->channels.eps);
        if (me->dbias)
            me->dbias[first + l] = (float)sums->u[l];
        if (me->dweight)
            me->dweight[first + l] = (float)(sums->ud[l] * invstd);
    }
}

static void apply_cell(const struct norm_backward *me, const struct cpu_cell *cell) {
    const struct cpu_view *v = &me->view;
    double m = me->attrs.training ? (double)(v->n * v->pixels) : 0;
    struct cpu_norm_slope slopes[CPU_GROUP];
    for (int64_t b = cell->first_block; b < cell->end_block; b++) {
        struct cpu_norm_sums sums;
        cpu_norm_sums_join(me->sums, v, me->grid.image_parts, b, &sums);
        if (cell->image_part == 0)
            write_gradients(me, &sums, b);
        cpu_norm_slope_make(&sums, m, &me->channels, v, b, &slopes[b - cell->first_block]);
    }
    cpu_norm_slope_cell(&me->tensors, slopes, v, cell);
}

/* ---- slots --------------------------------------------------------------------------------------- */

static void run_part(void *context, int part, int n_parts) {
    const struct norm_backward *me = context;
    struct cpu_cell cell = cpu_grid_cell(&me->grid, &me->view, part);
    (void)n_parts;
    for (struct cpu_cell p = cell; cpu_cell_group(&p, &cell, &me->view); p.first_block = p.end_block) {
        if (me->has_sums)
            cpu_norm_sums_cell(&me->tensors, me->channels.mean, &me->view, &p,
                               &me->sums[cell.image_part * me->view.n_blocks]);
        if (me->has_apply)
            apply_cell(me, &p);
    }
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct norm_backward *me = (struct norm_backward *)kernel;
    me->tensors = (struct cpu_norm_tensors){.dy = in[DY],
                                            .x = in[X],
                                            .mask = me->attrs.relu && me->n_in > MASK ? in[MASK] : NULL,
                                            .dx = out[DX],
                                            .dresidual = out[DRESIDUAL],
                                            .is_plain = me->view.lanes == 1};
    me->channels = (struct cpu_norm_channels){in[WEIGHT], in[MEAN], in[VAR], me->attrs.eps};
    me->dweight = out[DWEIGHT];
    me->dbias = out[DBIAS];
    me->sums = scratch;
    /* parts that share a block must all have their sums before any goes on */
    bool is_split = me->grid.image_parts > 1;
    me->has_sums = true;
    me->has_apply = !is_split;
    cpu_team_run(cpu_grid_parts(&me->grid), run_part, me);
    if (is_split) {
        me->has_sums = false;
        me->has_apply = true;
        cpu_team_run(cpu_grid_parts(&me->grid), run_part, me);
    }
    return CVY_OK;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    struct norm_backward *me;
    struct cpu_view view;
    struct cpu_grid grid;
    CVY_TRY(cpu_grid_of(device, call, X, &view, &grid));
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = &CPU_REAL(cpu_kernel_batch_norm_backward);
    me->attrs = *(const struct cvy_batch_norm_attrs *)call->attrs;
    me->n_in = call->n_in;
    me->view = view;
    me->grid = grid;
    *scratch_bytes = (size_t)(me->grid.image_parts * me->view.n_blocks) * sizeof(struct cpu_norm_sums);
    *out = &me->base;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

const struct cvy_kernel_impl CPU_REAL(cpu_kernel_batch_norm_backward) = {
    .op = "batch_norm_backward",
    .supports = CPU_SUPPORTS_REAL,
    .choose = cpu_norm_backward_choose,
    .prepare = prepare,
    .run = run,
    .release = release,
};
