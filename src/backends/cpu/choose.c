/* Choices of layouts that many kernels make. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/isa.h"

static struct cvy_operand_spec *operand(const struct cvy_call *call, int i) {
    return i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
}

static bool is_other_float(cvy_dtype dtype) {
    return dtype == CVY_F64 || dtype == CVY_BF16 || dtype == CVY_F16;
}

bool cpu_supports_f32(const struct cvy_device *device, const struct cvy_call *call) {
    (void)device;
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        const struct cvy_operand_spec *spec = operand(call, i);
        if (!spec->is_absent && is_other_float(spec->desc.dtype))
            return false;
    }
    return true;
}

bool cpu_has_bf16(void) {
#ifdef CVY_CPU_HAS_BF16 /* the compiler knows the processors that have it */
    return cpu_isa_has_bf16((int)dnnl_get_effective_cpu_isa());
#else
    return false;
#endif
}

bool cpu_supports_bf16(const struct cvy_device *device, const struct cvy_call *call) {
    (void)device;
    int n_narrow = 0;
    for (int i = 0; i < call->n_in; i++) {
        const struct cvy_operand_spec *spec = &call->in[i];
        bool is_narrow = i < 32 && call->op->narrow_in >> i & 1;
        if (spec->is_absent)
            continue;
        if (is_narrow ? spec->desc.dtype != CVY_BF16 : is_other_float(spec->desc.dtype))
            return false;
        n_narrow += is_narrow;
    }
    return n_narrow > 0 && cpu_has_bf16();
}

bool cpu_supports_both(const struct cvy_device *device, const struct cvy_call *call) {
    return cpu_supports_f32(device, call) || cpu_supports_bf16(device, call);
}

static void choose_layout(struct cvy_call *call, const struct cvy_shape *shape,
                          const struct cvy_layout *layout) {
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        struct cvy_operand_spec *spec = operand(call, i);
        spec->layout = cvy_shape_equal(&spec->desc.shape, shape) ? layout : NULL;
    }
}

cvy_status cpu_choose_plain(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    choose_layout(call, &call->in[0].desc.shape, NULL);
    return CVY_OK;
}

void cpu_choose_like(struct cvy_call *call, int leader) {
    choose_layout(call, &call->in[leader].desc.shape, call->in[leader].layout);
}

void cpu_choose_view(struct cvy_call *call, int leader) {
    struct cpu_view view;
    const struct cvy_operand_spec *spec = &call->in[leader];
    bool has_view = cpu_layout_view(spec->layout, &spec->desc, &view);
    choose_layout(call, &spec->desc.shape, has_view ? spec->layout : NULL);
}
