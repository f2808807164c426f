/* channel_sum: the sum over all axes but one; the gradient of a bias. Single precision within a chunk, double
   between chunks, all in a fixed order. */
#include "ops/channel_sum.h"
#include "backends/cpu/grid.h"
#include "backends/cpu/kernels.h"
#include "base/mem.h"

#include <stdlib.h>

struct channel_sum {
    struct cvy_kernel base;
    struct cpu_view view;
    struct cpu_grid grid;
    double *sums; /* [image_part][block][lane], in the workspace */
    const cpu_real *x;
    float *y;
};

static int axis_of(const struct cvy_call *call) {
    int64_t axis = ((const struct cvy_channel_sum_attrs *)call->attrs)->axis;
    return (int)(axis < 0 ? axis + call->in[0].desc.shape.n : axis);
}

/* A plain tensor with the axes before the kept one as images, those behind it as pixels. Where nothing lies behind
   it, channels lie side by side, and the images are pixels. */
static struct cpu_view plain_view(const struct cvy_shape *shape, int axis) {
    int64_t before = 1, behind = 1, channels = shape->dim[axis];
    for (int i = 0; i < shape->n; i++) {
        before *= i < axis ? shape->dim[i] : 1;
        behind *= i > axis ? shape->dim[i] : 1;
    }
    if (behind > 1)
        return (struct cpu_view){.n = before,
                                 .channels = channels,
                                 .pixels = behind,
                                 .lanes = 1,
                                 .image = channels * behind,
                                 .block = behind,
                                 .pixel = 1,
                                 .n_blocks = channels,
                                 .padded_channels = channels};
    return (struct cpu_view){.n = 1,
                             .channels = channels,
                             .pixels = before,
                             .lanes = CPU_LANES,
                             .image = channels * before,
                             .block = CPU_LANES,
                             .pixel = channels,
                             .n_blocks = (channels + CPU_LANES - 1) / CPU_LANES,
                             .padded_channels = channels};
}

CPU_INLINE void sum_vectors(const cpu_real *x, const struct cpu_chunk *c, const int width, cpu_v16 *out) {
    cpu_v16 v, sum = {0};
    for (int64_t n = 0; n < c->n_images; n++, x += c->image_step) {
        for (int64_t i = 0; i < c->n_vectors; i++) {
            cpu_load(&v, x + i * c->step, width);
            sum += v;
        }
        cpu_load(&v, x + c->n_vectors * c->step, c->tail);
        sum += v;
    }
    *out = sum;
}

CPU_VECTOR static void channel_sum_chunk(const cpu_real *x, const struct cpu_chunk *c, bool is_plain,
                                         cpu_v16 *out) {
    if (c->width == CPU_LANES)
        sum_vectors(x, c, CPU_LANES, out);
    else
        sum_vectors(x, c, c->width, out);
    if (is_plain)
        *out = (cpu_v16){0} + cpu_fold(out);
}

static void run_part(void *context, int part, int n_parts) {
    const struct channel_sum *me = context;
    const struct cpu_view *v = &me->view;
    struct cpu_cell cell = cpu_grid_cell(&me->grid, v, part);
    (void)n_parts;
    for (int64_t b = cell.first_block; b < cell.end_block; b++) {
        double *sums = me->sums + (cell.image_part * v->n_blocks + b) * CPU_LANES;
        for (int l = 0; l < CPU_LANES; l++)
            sums[l] = 0;
        struct cpu_walk walk = cpu_walk_start(v, &cell, b);
        for (struct cpu_chunk c; cpu_walk_next(&walk, &c);) {
            cpu_v16 sum;
            channel_sum_chunk(me->x + c.at, &c, v->lanes == 1, &sum);
            for (int l = 0; l < CPU_LANES; l++)
                sums[l] += (double)sum[l];
        }
    }
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct channel_sum *me = (struct channel_sum *)kernel;
    me->x = in[0];
    me->y = out[0];
    me->sums = scratch;
    cpu_team_run(cpu_grid_parts(&me->grid), run_part, me);
    for (int64_t c = 0; c < me->view.channels; c++) {
        double sum = 0;
        for (int i = 0; i < me->grid.image_parts; i++)
            sum += me->sums[(i * me->view.n_blocks + c / me->view.lanes) * CPU_LANES + c % me->view.lanes];
        me->y[c] = (float)sum;
    }
    return CVY_OK;
}

static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    if (axis_of(call) != 1)
        return cpu_choose_plain(device, call);
    cpu_choose_view(call, 0);
    call->out[0].layout = NULL;
    return CVY_OK;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    struct channel_sum *me;
    const struct cvy_operand_spec *x = &call->in[0];
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = &CPU_REAL(cpu_kernel_channel_sum);
    if (!x->layout) {
        me->view = plain_view(&x->desc.shape, axis_of(call));
    } else if (axis_of(call) != 1 || !cpu_layout_view(x->layout, &x->desc, &me->view)) {
        free(me);
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s: channel_sum has no loops for this layout", device->name);
    }
    me->grid = cpu_grid_make(&me->view, device->spec.n_threads);
    *scratch_bytes = (size_t)(me->grid.image_parts * me->view.n_blocks) * CPU_LANES * sizeof(double);
    *out = &me->base;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

const struct cvy_kernel_impl CPU_REAL(cpu_kernel_channel_sum) = {
    .op = "channel_sum",
    .supports = CPU_SUPPORTS_REAL,
    .choose = choose,
    .prepare = prepare,
    .run = run,
    .release = release,
};
