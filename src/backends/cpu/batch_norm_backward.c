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
    const float *weight, *mean, *var;
    float *dweight, *dbias;
};

/* The slope of a block; the part that has the first images writes dweight and dbias. */
static void settle_block(const struct norm_backward *me, const struct cpu_cell *cell, int64_t block,
                         struct cpu_norm_slope *out) {
    const struct cpu_view *v = &me->view;
    int n_channels = cpu_n_channels(v, block);
    double m = (double)(v->n * v->pixels);
    float gains[CPU_LANES], offsets[CPU_LANES], tilts[CPU_LANES];
    int64_t first = cpu_first_channel(v, block);
    for (int l = 0; l < n_channels; l++) {
        double u = 0, ud = 0, invstd = 1 / sqrt((double)me->var[first + l] + me->attrs.eps);
        for (int i = 0; i < me->grid.image_parts; i++) {
            u += me->sums[i * v->n_blocks + block].u[l];
            ud += me->sums[i * v->n_blocks + block].ud[l];
        }
        double gain = (double)me->weight[first + l] * invstd;
        gains[l] = (float)gain;
        offsets[l] = me->attrs.training ? (float)(gain * u / m) : 0;
        tilts[l] = me->attrs.training ? (float)(gain * invstd * invstd * ud / m) : 0;
        if (cell->image_part == 0 && me->dbias)
            me->dbias[first + l] = (float)u;
        if (cell->image_part == 0 && me->dweight)
            me->dweight[first + l] = (float)(ud * invstd);
    }
    cpu_per_lane(v, gains, n_channels, &out->gain);
    cpu_per_lane(v, offsets, n_channels, &out->offset);
    cpu_per_lane(v, tilts, n_channels, &out->tilt);
    cpu_per_lane(v, me->mean + first, n_channels, &out->mean);
}

static void apply_block(const struct norm_backward *me, const struct cpu_cell *cell, int64_t block) {
    struct cpu_norm_slope s;
    settle_block(me, cell, block, &s);
    cpu_norm_slope_block(&me->tensors, &s, &me->view, cell, block);
}

/* ---- slots --------------------------------------------------------------------------------------- */

static void run_part(void *context, int part, int n_parts) {
    const struct norm_backward *me = context;
    struct cpu_cell cell = cpu_grid_cell(&me->grid, &me->view, part);
    (void)n_parts;
    for (int64_t b = cell.first_block; b < cell.end_block; b++) {
        if (me->has_sums)
            cpu_norm_sums_block(&me->tensors, me->mean, &me->view, &cell, b,
                                &me->sums[cell.image_part * me->view.n_blocks + b]);
        if (me->has_apply)
            apply_block(me, &cell, b);
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
    me->weight = in[WEIGHT];
    me->mean = in[MEAN];
    me->var = in[VAR];
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

/* x was laid out by the forward pass, and its mask with it. */
static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    cpu_choose_view(call, X);
    return CVY_OK;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    struct norm_backward *me;
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = &cpu_kernel_batch_norm_backward;
    me->attrs = *(const struct cvy_batch_norm_attrs *)call->attrs;
    me->n_in = call->n_in;
    if (!cpu_layout_view(call->in[X].layout, &call->in[X].desc, &me->view)) {
        free(me);
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s: batch_norm_backward has no loops for this layout",
                        device->name);
    }
    me->grid = cpu_grid_make(&me->view, device->spec.n_threads);
    *scratch_bytes = (size_t)(me->grid.image_parts * me->view.n_blocks) * sizeof(struct cpu_norm_sums);
    *out = &me->base;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

const struct cvy_kernel_impl cpu_kernel_batch_norm_backward = {
    .op = "batch_norm_backward",
    .supports = cpu_supports_f32,
    .choose = choose,
    .prepare = prepare,
    .run = run,
    .release = release,
};
