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

/* oneDNN 2.6 looks for a pair of types in a std::map by operator[], which enters those that it does not find: of two
   threads that want their first one at the same moment one may be told that there is none, or the map be destroyed
   (2 of 9,000 starts of a program that does nothing else). Once all pairs are entered nothing changes. */
void cpu_reorder_settle(dnnl_engine_t engine) {
    static const dnnl_data_type_t types[] = {dnnl_f32, dnnl_bf16, dnnl_f16, dnnl_s32, dnnl_s8, dnnl_u8};
    enum { N = sizeof types / sizeof types[0] };
    const dnnl_dims_t dims = {1};
    for (int k = 0; k < N * N; k++) {
        dnnl_memory_desc_t from, to;
        dnnl_primitive_desc_t pd;
        if (dnnl_memory_desc_init_by_tag(&from, 1, dims, types[k / N], dnnl_a) == dnnl_success &&
            dnnl_memory_desc_init_by_tag(&to, 1, dims, types[k % N], dnnl_a) == dnnl_success &&
            dnnl_reorder_primitive_desc_create(&pd, &from, engine, &to, engine, NULL) == dnnl_success)
            dnnl_primitive_desc_destroy(pd);
    }
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
