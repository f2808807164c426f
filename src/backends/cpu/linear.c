/* linear and its two gradients, as oneDNN inner products of x [rows,in], weight [out,in] and y [rows,out], where
   rows are all leading dimensions together. Everything stays plain: reordering weights costs more than it gains
   on the few small products that networks for images have. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/primitive.h"

#include <string.h>

struct pass {
    const struct cvy_kernel_impl *impl;
    int x, weight, y; /* numbers as in struct cpu_argument */
    int n_arguments;
    struct cpu_argument arguments[4];
};

static const struct pass passes[] = {
    {&cpu_kernel_linear,
     0,
     1,
     CPU_OUT(0),
     4,
     {{DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_BIAS, 2}, {DNNL_ARG_DST, CPU_OUT(0)}}},
    {&cpu_kernel_linear_backward_data,
     CPU_OUT(0),
     1,
     0,
     3,
     {{DNNL_ARG_DIFF_DST, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_DIFF_SRC, CPU_OUT(0)}}},
    {&cpu_kernel_linear_backward_weights,
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

/* The operand as a matrix: rows, last dimension. */
static cvy_status describe(const struct cvy_call *call, int number, dnnl_memory_desc_t *out) {
    const struct cvy_desc *desc = number >= 0 ? &call->in[number].desc : &call->out[CPU_OUT(number)].desc;
    int64_t last = desc->shape.dim[desc->shape.n - 1];
    struct cvy_desc matrix = {desc->dtype, CVY_SHAPE(cvy_shape_count(&desc->shape) / last, last)};
    return cpu_layout_md(NULL, &matrix, 1, out);
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    const struct pass *pass = pass_of(call);
    struct cpu_device *cpu = cpu_device(device);
    dnnl_memory_desc_t x, w, y, bias;
    dnnl_inner_product_desc_t desc;
    dnnl_primitive_desc_t pd;
    dnnl_status_t made;
    bool has_bias = pass->n_arguments == 4 && call->n_in > 2 && !call->in[2].is_absent;
    CVY_TRY(describe(call, pass->x, &x));
    CVY_TRY(describe(call, pass->weight, &w));
    CVY_TRY(describe(call, pass->y, &y));
    if (has_bias)
        CVY_TRY(cpu_layout_md(NULL, &call->in[2].desc, 1, &bias));
    if (pass->impl == &cpu_kernel_linear)
        made = dnnl_inner_product_forward_desc_init(&desc, dnnl_forward_training, &x, &w,
                                                    has_bias ? &bias : NULL, &y);
    else if (pass->impl == &cpu_kernel_linear_backward_data)
        made = dnnl_inner_product_backward_data_desc_init(&desc, &x, &w, &y);
    else
        made = dnnl_inner_product_backward_weights_desc_init(&desc, &x, &w, NULL, &y);
    CVY_TRY(cpu_dnnl(made, call->op->name));
    CVY_TRY(cpu_dnnl(dnnl_primitive_desc_create(&pd, &desc, cpu->attr, cpu->engine, NULL), call->op->name));
    return cpu_primitive_new(device, pass->impl, call, pd, pass->arguments, pass->n_arguments, out,
                             scratch_bytes);
}

#define LINEAR_KERNEL(name)                            \
    const struct cvy_kernel_impl cpu_kernel_##name = { \
        .op = #name,                                   \
        .supports = cpu_supports_both,                 \
        .choose = cpu_choose_plain,                    \
        .prepare = prepare,                            \
        .run = cpu_primitive_run,                      \
        .release = cpu_primitive_release,              \
    };
LINEAR_KERNEL(linear)
LINEAR_KERNEL(linear_backward_data)
LINEAR_KERNEL(linear_backward_weights)
