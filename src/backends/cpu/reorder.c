/* reorder: the same values in another layout. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/primitive.h"

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    static const struct cpu_argument arguments[] = {{DNNL_ARG_FROM, 0}, {DNNL_ARG_TO, CPU_OUT(0)}};
    const struct cvy_operand_spec *from = &call->in[0], *to = &call->out[0];
    struct cpu_device *cpu = cpu_device(device);
    dnnl_memory_desc_t from_md, to_md;
    dnnl_primitive_desc_t pd;
    int64_t groups =
        cpu_layout_groups(from->layout) > 1 ? cpu_layout_groups(from->layout) : cpu_layout_groups(to->layout);
    struct cvy_desc desc = cpu_layout_desc(from->layout, &from->desc);
    desc = cpu_layout_desc(to->layout, &desc);
    CVY_TRY(cpu_layout_md(from->layout, &desc, groups, &from_md));
    CVY_TRY(cpu_layout_md(to->layout, &desc, groups, &to_md));
    CVY_TRY(cpu_dnnl(
        dnnl_reorder_primitive_desc_create(&pd, &from_md, cpu->engine, &to_md, cpu->engine, cpu->attr),
        "reorder"));
    return cpu_primitive_new(device, &cpu_kernel_reorder, call, pd, arguments, 2, out, scratch_bytes);
}

static bool supports(const struct cvy_device *device, const struct cvy_call *call) {
    dnnl_data_type_t type;
    (void)device;
    return cpu_dtype(call->in[0].desc.dtype, &type) && call->in[0].desc.shape.n > 0;
}

/* The call says which layouts: both stay. */
static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device, (void)call;
    return CVY_OK;
}

const struct cvy_kernel_impl cpu_kernel_reorder = {
    .op = "reorder",
    .supports = supports,
    .choose = choose,
    .prepare = prepare,
    .run = cpu_primitive_run,
    .release = cpu_primitive_release,
    .not_in_place = 1,
};
