/* See conv_product.h. */
#include "backends/cpu/conv_product.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { DY, X };        /* inputs */
enum { ALIGN = 4096 }; /* bytes, of what the product's own workspace begins at */

struct product {
    struct cvy_kernel base;
    struct cvy_kernel *inner;
    int64_t stride[2], height, width; /* of x */
    int64_t out_height, out_width;    /* of dy */
    int64_t n_rows, pixel_bytes;      /* rows of pixels of all images; a pixel of x */
    size_t gathered_bytes;            /* 0: x is taken as it lies */
    int n_threads;
    /* of the present run */
    const char *x;
    char *gathered;
};

bool cpu_conv_product_fits(const struct cvy_call *call) {
    const struct cvy_conv2d_attrs *a = call->attrs;
    struct cpu_view x, dy;
    for (int i = 0; i < 2; i++) {
        if (a->kernel[i] != 1 || a->padding[i] != 0)
            return false;
    }
    return a->groups == 1 && call->in[X].desc.dtype == CVY_BF16 &&
           cpu_layout_view(call->in[X].layout, &call->in[X].desc, &x) && x.pixel == x.channels &&
           cpu_layout_view(call->in[DY].layout, &call->in[DY].desc, &dy) && dy.pixel == dy.channels;
}

/* ---- running --------------------------------------------------------------------------------------- */

static void gather_part(void *context, int part, int n_parts) {
    const struct product *me = context;
    int64_t first, end;
    cpu_part(me->n_rows, 1, part, n_parts, &first, &end);
    char *to = me->gathered + first * me->out_width * me->pixel_bytes;
    for (int64_t row = first; row < end; row++) {
        int64_t image = row / me->out_height, y = row % me->out_height * me->stride[0];
        const char *from = me->x + (image * me->height + y) * me->width * me->pixel_bytes;
        for (int64_t i = 0; i < me->out_width; i++, to += me->pixel_bytes)
            memcpy(to, from + i * me->stride[1] * me->pixel_bytes, (size_t)me->pixel_bytes);
    }
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct product *me = (struct product *)kernel;
    void *operands[] = {in[DY], in[X]};
    if (me->gathered_bytes > 0) {
        me->x = in[X];
        operands[X] = me->gathered = scratch;
        cpu_team_run(me->n_threads, gather_part, me);
    }
    return me->inner->impl->run(me->inner, operands, out, (char *)scratch + me->gathered_bytes);
}

static void release(struct cvy_kernel *kernel) {
    struct product *me = (struct product *)kernel;
    cpu_primitive_release(me->inner);
    free(me);
}

/* ---- preparing ------------------------------------------------------------------------------------- */

static const struct cvy_kernel_impl inner_impl = {
    .op = "conv2d_backward_weights", .run = cpu_primitive_run, .release = cpu_primitive_release};
static const struct cvy_kernel_impl product_impl = {
    .op = "conv2d_backward_weights", .run = run, .release = release};

static cvy_status describe(struct cvy_device *device, const struct cvy_call *call,
                           dnnl_primitive_desc_t *out) {
    const struct cvy_shape *dy = &call->in[DY].desc.shape;
    int64_t n_pixels = dy->dim[0] * dy->dim[2] * dy->dim[3];
    dnnl_dims_t left_dims = {dy->dim[1], n_pixels}, right_dims = {n_pixels, call->in[X].desc.shape.dim[1]};
    dnnl_dims_t product_dims = {left_dims[0], right_dims[1]};
    dnnl_memory_desc_t left, right, product;
    dnnl_matmul_desc_t desc;
    struct cpu_device *cpu = cpu_device(device);
    CVY_TRY(cpu_dnnl(dnnl_memory_desc_init_by_tag(&left, 2, left_dims, dnnl_bf16, dnnl_ba), "dy"));
    CVY_TRY(cpu_dnnl(dnnl_memory_desc_init_by_tag(&right, 2, right_dims, dnnl_bf16, dnnl_ab), "x"));
    CVY_TRY(cpu_dnnl(dnnl_memory_desc_init_by_tag(&product, 2, product_dims, dnnl_f32, dnnl_ab), "dweight"));
    CVY_TRY(cpu_dnnl(dnnl_matmul_desc_init(&desc, &left, &right, NULL, &product), call->op->name));
    return cpu_dnnl(dnnl_primitive_desc_create(out, &desc, cpu->attr, cpu->engine, NULL), call->op->name);
}

cvy_status cpu_conv_product_prepare(struct cvy_device *device, const struct cvy_call *call,
                                    struct cvy_kernel **out, size_t *scratch_bytes) {
    static const struct cpu_argument arguments[] = {
        {DNNL_ARG_SRC, DY}, {DNNL_ARG_WEIGHTS, X}, {DNNL_ARG_DST, CPU_OUT(0)}};
    const struct cvy_conv2d_attrs *a = call->attrs;
    const struct cvy_shape *x = &call->in[X].desc.shape, *dy = &call->in[DY].desc.shape;
    struct product *me;
    dnnl_primitive_desc_t pd;
    bool is_gathered = a->stride[0] > 1 || a->stride[1] > 1;
    CVY_TRY(CVY_ALLOC(me, 1));
    *me = (struct product){.base.impl = &product_impl,
                           .stride = {a->stride[0], a->stride[1]},
                           .height = x->dim[2],
                           .width = x->dim[3],
                           .out_height = dy->dim[2],
                           .out_width = dy->dim[3],
                           .n_rows = dy->dim[0] * dy->dim[2],
                           .pixel_bytes = x->dim[1] * (int64_t)sizeof(uint16_t),
                           .n_threads = device->spec.n_threads};
    size_t bytes = (size_t)(me->n_rows * me->out_width * me->pixel_bytes);
    me->gathered_bytes = is_gathered ? (bytes + ALIGN - 1) / ALIGN * ALIGN : 0;
    cvy_status status = describe(device, call, &pd);
    if (status == CVY_OK)
        status = cpu_primitive_new(device, &inner_impl, call, pd, arguments, 3, &me->inner, scratch_bytes);
    if (status != CVY_OK) {
        free(me);
        return status;
    }
    *scratch_bytes += me->gathered_bytes;
    *out = &me->base;
    return CVY_OK;
}
