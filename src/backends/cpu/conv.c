/* conv2d and its two gradients: one oneDNN primitive each, mostly a convolution (see conv_product.h).
   Layouts: oneDNN chooses all of them. The layout of dweight becomes that of the stored weight, and forward and
   backward_data, which may want others, get theirs through reorders after each update.
   Forward is always made for training, in evaluation too: for inference alone Winograd would want its weights
   transformed beforehand, one more copy of each. */
#include "backends/cpu/conv_product.h"
#include "backends/cpu/conv_rule.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/primitive.h"

#include <string.h>

enum { DIRECT, WINOGRAD, PRODUCT }; /* cvy_call.algorithm */

struct pass { /* which operand is what: numbers as in struct cpu_argument */
    const struct cvy_kernel_impl *impl;
    enum cpu_conv_pass kind;
    int x, weight, y;
    int n_arguments;
    struct cpu_argument arguments[4];
};

static const struct pass passes[] = {
    {&cpu_kernel_conv2d,
     CPU_CONV_FORWARD,
     0,
     1,
     CPU_OUT(0),
     4,
     {{DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_BIAS, 2}, {DNNL_ARG_DST, CPU_OUT(0)}}},
    {&cpu_kernel_conv2d_backward_data,
     CPU_CONV_BACKWARD_DATA,
     CPU_OUT(0),
     1,
     0,
     3,
     {{DNNL_ARG_DIFF_DST, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_DIFF_SRC, CPU_OUT(0)}}},
    {&cpu_kernel_conv2d_backward_weights,
     CPU_CONV_BACKWARD_WEIGHTS,
     1,
     CPU_OUT(0),
     0,
     3,
     {{DNNL_ARG_DIFF_DST, 0}, {DNNL_ARG_SRC, 1}, {DNNL_ARG_DIFF_WEIGHTS, CPU_OUT(0)}}},
};

static const struct pass *pass_of(const struct cvy_call *call) {
    const struct pass *pass = passes;
    while (strcmp(pass->impl->op, call->op->name) != 0)
        pass++;
    return pass;
}

static struct cvy_operand_spec *operand(const struct cvy_call *call, int number) {
    return number >= 0 ? &call->in[number] : &call->out[CPU_OUT(number)];
}

/* The descriptor of one operand: its layout's, or oneDNN's choice. */
static cvy_status describe(const struct cvy_operand_spec *spec, int64_t groups, bool any,
                           dnnl_memory_desc_t *out) {
    const struct cvy_desc desc = spec->desc.shape.n == 2 ? cpu_desc_of_weights(&spec->desc) : spec->desc;
    CVY_TRY(cpu_layout_md(any ? NULL : spec->layout, &desc, groups, out));
    if (!any)
        return CVY_OK;
    dnnl_memory_desc_t plain = *out;
    return cpu_dnnl(
        dnnl_memory_desc_init_by_tag(out, plain.ndims, plain.dims, plain.data_type, dnnl_format_tag_any),
        "descriptor");
}

static dnnl_status_t init(enum cpu_conv_pass kind, dnnl_alg_kind_t algorithm,
                          const struct cvy_conv2d_attrs *a, const dnnl_memory_desc_t *x,
                          const dnnl_memory_desc_t *w, const dnnl_memory_desc_t *bias,
                          const dnnl_memory_desc_t *y, dnnl_convolution_desc_t *out) {
    dnnl_dims_t dilation = {a->dilation[0] - 1, a->dilation[1] - 1};
    dnnl_dims_t stride = {a->stride[0], a->stride[1]}, padding = {a->padding[0], a->padding[1]};
    switch (kind) {
    case CPU_CONV_FORWARD:
        return dnnl_dilated_convolution_forward_desc_init(out, dnnl_forward_training, algorithm, x, w, bias,
                                                          y, stride, dilation, padding, padding);
    case CPU_CONV_BACKWARD_DATA:
        return dnnl_dilated_convolution_backward_data_desc_init(out, algorithm, x, w, y, stride, dilation,
                                                                padding, padding);
    default:
        return dnnl_dilated_convolution_backward_weights_desc_init(out, algorithm, x, w, NULL, y, stride,
                                                                   dilation, padding, padding);
    }
}

/* any: oneDNN chooses the layouts; else they are the operands'. */
static cvy_status describe_primitive(struct cvy_device *device, const struct cvy_call *call, int algorithm,
                                     bool any, dnnl_primitive_desc_t *out) {
    const struct pass *pass = pass_of(call);
    const struct cvy_conv2d_attrs *a = call->attrs;
    struct cpu_device *cpu = cpu_device(device);
    dnnl_memory_desc_t x, w, y, bias;
    dnnl_convolution_desc_t desc;
    bool has_bias = pass->kind == CPU_CONV_FORWARD && call->n_in > 2 && !call->in[2].is_absent;
    CVY_TRY(describe(operand(call, pass->x), 1, any, &x));
    CVY_TRY(describe(operand(call, pass->weight), a->groups, any, &w));
    CVY_TRY(describe(operand(call, pass->y), 1, any, &y));
    if (has_bias)
        CVY_TRY(describe(&call->in[2], 1, false, &bias));
    CVY_TRY(
        cpu_dnnl(init(pass->kind, algorithm == WINOGRAD ? dnnl_convolution_winograd : dnnl_convolution_direct,
                      a, &x, &w, has_bias ? &bias : NULL, &y, &desc),
                 call->op->name));
    return cpu_dnnl(dnnl_primitive_desc_create(out, &desc, cpu->attr, cpu->engine, NULL), call->op->name);
}

static struct cpu_conv_shape shape_of(const struct cvy_call *call) {
    const struct pass *pass = pass_of(call);
    const struct cvy_shape *x = &operand(call, pass->x)->desc.shape, *y = &operand(call, pass->y)->desc.shape;
    return (struct cpu_conv_shape){call->rule_batch, x->dim[1], y->dim[1], y->dim[2], y->dim[3]};
}

static double work(const char *conv_algo, const struct cvy_call *call) {
    struct cpu_conv_shape shape = shape_of(call);
    bool is_winograd = cpu_conv_rule(conv_algo, pass_of(call)->kind, call->attrs, &shape);
    return is_winograd ? cpu_winograd_time(&shape) : 1;
}

static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    cvy_status status;
    const struct pass *pass = pass_of(call);
    dnnl_primitive_desc_t pd = NULL;
    struct cpu_conv_shape shape = shape_of(call);
    call->algorithm =
        cpu_conv_rule(device->spec.conv_algo, pass->kind, call->attrs, &shape) ? WINOGRAD : DIRECT;
    if (call->algorithm == WINOGRAD && describe_primitive(device, call, WINOGRAD, true, &pd) != CVY_OK)
        call->algorithm = DIRECT;
    if (call->algorithm == DIRECT)
        CVY_TRY(describe_primitive(device, call, DIRECT, true, &pd));
    for (int i = 0; i < pass->n_arguments; i++) {
        const struct cpu_argument *argument = &pass->arguments[i];
        if (argument->id == DNNL_ARG_BIAS) {
            if (call->n_in > 2)
                call->in[2].layout = NULL;
            continue;
        }
        CVY_TRY_OUT(cpu_primitive_layout(pd, argument->id, operand(call, argument->operand)));
    }
    if (call->algorithm == DIRECT && pass->kind == CPU_CONV_BACKWARD_WEIGHTS && cpu_conv_product_fits(call)) {
        call->algorithm = PRODUCT;
        call->out[0].layout = NULL;
    }
    status = CVY_OK;
out:
    dnnl_primitive_desc_destroy(pd);
    return status;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    const struct pass *pass = pass_of(call);
    dnnl_primitive_desc_t pd;
    if (call->algorithm == PRODUCT)
        return cpu_conv_product_prepare(device, call, out, scratch_bytes);
    CVY_TRY(describe_primitive(device, call, call->algorithm, false, &pd));
    return cpu_primitive_new(device, pass->impl, call, pd, pass->arguments, pass->n_arguments, out,
                             scratch_bytes);
}

#define CONV_KERNEL(name)                              \
    const struct cvy_kernel_impl cpu_kernel_##name = { \
        .op = #name,                                   \
        .supports = cpu_supports_both,                 \
        .choose = choose,                              \
        .work = work,                                  \
        .prepare = prepare,                            \
        .run = cpu_primitive_run,                      \
        .release = cpu_primitive_release,              \
    };
CONV_KERNEL(conv2d)
CONV_KERNEL(conv2d_backward_data)
CONV_KERNEL(conv2d_backward_weights)
