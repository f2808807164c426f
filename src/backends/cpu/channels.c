/* concat, channel_slice, its gradient, channel_shuffle: channels of an image lie one behind the other, in plain layout
   and in blocks alike, those of a pixel where channels come last: whole runs of them are copied, each by one thread. */
#include "ops/channels.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/real.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct piece { /* of each image; in elements */
    int in;    /* from which input; -1: zeros */
    int64_t from, from_step, to, n;
};

struct channels {
    struct cvy_kernel base;
    int64_t images, to_step;
    int64_t pixels;
    int n_parts, n_pieces;
    struct piece *pieces; /* behind the struct */
    /* of the present run */
    void *const *in;
    cpu_real *out;
};

/* ---- layouts --------------------------------------------------------------------------------------- */

/* N,H,W,C: each pixel is as an image of one pixel. */
static bool is_channels_last(const struct cvy_operand_spec *spec) {
    struct cpu_view v;
    return spec->layout && cpu_layout_view(spec->layout, &spec->desc, &v) && v.lanes > 1 && v.pixels > 1 &&
           v.block == v.lanes;
}

/* Channels per block where channels in whole blocks are runs of memory; 0: this layout has no such blocks. */
static int64_t block_of(const struct cvy_operand_spec *spec) {
    struct cpu_view v;
    if (!spec->layout || is_channels_last(spec))
        return 1;
    return cpu_layout_view(spec->layout, &spec->desc, &v) && v.block == v.pixels * v.lanes ? v.lanes : 0;
}

/* All in the first input's layout, if every border between channels is one between its blocks; else plain. */
static void choose_blocks(struct cvy_call *call, const int64_t *borders, int n_borders) {
    int64_t block = block_of(&call->in[0]);
    bool fits = block > 0;
    for (int k = 0; k < n_borders && fits; k++)
        fits = borders[k] % block == 0;
    const struct cvy_layout *layout = fits ? call->in[0].layout : NULL;
    for (int i = 0; i < call->n_in; i++)
        call->in[i].layout = layout;
    call->out[0].layout = layout;
}

static cvy_status choose_concat(struct cvy_device *device, struct cvy_call *call) {
    int64_t borders[8] = {0};
    (void)device;
    for (int i = 0; i < call->n_in && i < CVY_N(borders); i++)
        borders[i] = call->in[i].is_absent ? 0 : call->in[i].desc.shape.dim[1];
    choose_blocks(call, borders, CVY_N(borders));
    return CVY_OK;
}

static cvy_status choose_slice(struct cvy_device *device, struct cvy_call *call) {
    const struct cvy_channel_slice_attrs *a = call->attrs;
    (void)device;
    choose_blocks(call, (const int64_t[]){a->first, a->count, a->channels, call->in[0].desc.shape.dim[1]}, 4);
    return CVY_OK;
}

/* ---- pieces ---------------------------------------------------------------------------------------- */

static cvy_status make(const struct cvy_device *device, const struct cvy_call *call,
                       const struct cvy_kernel_impl *impl, int64_t max_pieces, struct channels **out) {
    struct channels *me;
    const struct cvy_shape *y = &call->out[0].desc.shape;
    CVY_TRY(cvy_alloc_items(1, sizeof *me + (size_t)max_pieces * sizeof *me->pieces, (void **)&me));
    me->base.impl = impl;
    me->pieces = (struct piece *)(me + 1);
    me->images = y->dim[0];
    me->pixels = 1;
    for (int k = 2; k < y->n; k++)
        me->pixels *= y->dim[k];
    if (is_channels_last(&call->out[0])) {
        me->images *= me->pixels;
        me->pixels = 1;
    }
    me->to_step = y->dim[1] * me->pixels;
    me->n_parts = cpu_team_parts(cvy_shape_count(y), device->spec.n_threads);
    *out = me;
    return CVY_OK;
}

/* The next piece: n channels from number `from` of the input on, to number `to` on. */
static void add(struct channels *me, const struct cvy_call *call, int in, int64_t from, int64_t to,
                int64_t n) {
    int64_t from_step = in < 0 ? 0 : call->in[in].desc.shape.dim[1] * me->pixels;
    if (n > 0)
        me->pieces[me->n_pieces++] =
            (struct piece){in, from * me->pixels, from_step, to * me->pixels, n * me->pixels};
}

static cvy_status prepare_concat(struct cvy_device *device, const struct cvy_call *call,
                                 struct cvy_kernel **out, size_t *scratch_bytes) {
    struct channels *me;
    int64_t to = 0;
    CVY_TRY(make(device, call, &CPU_REAL(cpu_kernel_concat), call->n_in, &me));
    for (int i = 0; i < call->n_in; i++) {
        int64_t n = call->in[i].is_absent ? 0 : call->in[i].desc.shape.dim[1];
        add(me, call, i, 0, to, n);
        to += n;
    }
    *scratch_bytes = 0;
    *out = &me->base;
    return CVY_OK;
}

static cvy_status prepare_channel_slice(struct cvy_device *device, const struct cvy_call *call,
                                        struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_channel_slice_attrs *a = call->attrs;
    struct channels *me;
    CVY_TRY(make(device, call, &CPU_REAL(cpu_kernel_channel_slice), 1, &me));
    add(me, call, 0, a->first, 0, a->count);
    *scratch_bytes = 0;
    *out = &me->base;
    return CVY_OK;
}

static cvy_status prepare_channel_slice_backward(struct cvy_device *device, const struct cvy_call *call,
                                                 struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_channel_slice_attrs *a = call->attrs;
    struct channels *me;
    int64_t end = a->first + a->count;
    CVY_TRY(make(device, call, &CPU_REAL(cpu_kernel_channel_slice_backward), 3, &me));
    add(me, call, -1, 0, 0, a->first);
    add(me, call, 0, 0, a->first, a->count);
    add(me, call, -1, 0, end, a->channels - end);
    *scratch_bytes = 0;
    *out = &me->base;
    return CVY_OK;
}

static cvy_status prepare_channel_shuffle(struct cvy_device *device, const struct cvy_call *call,
                                          struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_channel_shuffle_attrs *a = call->attrs;
    struct channels *me;
    int64_t n = call->out[0].desc.shape.dim[1];
    CVY_TRY(make(device, call, &CPU_REAL(cpu_kernel_channel_shuffle), n, &me));
    for (int64_t c = 0; c < n; c++)
        add(me, call, 0, cvy_channel_shuffled(n, a->groups, c), c, 1);
    *scratch_bytes = 0;
    *out = &me->base;
    return CVY_OK;
}

/* ---- running --------------------------------------------------------------------------------------- */

static void run_part(void *context, int part, int n_parts) {
    const struct channels *me = context;
    int64_t first, end;
    cpu_part(me->images * me->n_pieces, 1, part, n_parts, &first, &end);
    for (int64_t k = first; k < end; k++) {
        const struct piece *p = &me->pieces[k % me->n_pieces];
        int64_t n = k / me->n_pieces;
        cpu_real *to = me->out + n * me->to_step + p->to;
        if (p->in < 0)
            memset(to, 0, (size_t)p->n * sizeof *to);
        else
            memcpy(to, (const cpu_real *)me->in[p->in] + n * p->from_step + p->from,
                   (size_t)p->n * sizeof *to);
    }
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct channels *me = (struct channels *)kernel;
    (void)scratch;
    me->in = in;
    me->out = out[0];
    cpu_team_run(me->n_parts, run_part, me);
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

#define CHANNEL_KERNEL(name, choose_slot)                        \
    const struct cvy_kernel_impl CPU_REAL(cpu_kernel_##name) = { \
        .op = #name,                                             \
        .supports = CPU_SUPPORTS_REAL,                           \
        .choose = choose_slot,                                   \
        .prepare = prepare_##name,                               \
        .run = run,                                              \
        .release = release,                                      \
    };
CHANNEL_KERNEL(concat, choose_concat)
CHANNEL_KERNEL(channel_slice, choose_slice)
CHANNEL_KERNEL(channel_slice_backward, choose_slice)
CHANNEL_KERNEL(channel_shuffle, cpu_choose_plain)
