/* Kernels of one pass over memory, element by element, in whatever layout the first operand has, in place too. The
   padding of blocked layouts is computed along with the rest. */
#ifndef CVY_CPU_ELTWISE_H
#define CVY_CPU_ELTWISE_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/vector.h"

/* y of the operands a and b, n elements each; of one operand, b is a. */
typedef void CPU_REAL(cpu_span)(cpu_real *y, const cpu_real *a, const cpu_real *b, int64_t n);
#define cpu_span CPU_REAL(cpu_span)
#define cpu_eltwise_choose CPU_REAL(cpu_eltwise_choose)
#define cpu_eltwise_choose_unpadded CPU_REAL(cpu_eltwise_choose_unpadded)
#define cpu_eltwise_prepare CPU_REAL(cpu_eltwise_prepare)
#define cpu_eltwise_run CPU_REAL(cpu_eltwise_run)
#define cpu_eltwise_release CPU_REAL(cpu_eltwise_release)

/* The slots. */
cvy_status cpu_eltwise_choose(struct cvy_device *device, struct cvy_call *call);
/* ... for functions that make something of zeros: padding would not stay 0, so where there is any, all lie plain. */
cvy_status cpu_eltwise_choose_unpadded(struct cvy_device *device, struct cvy_call *call);
cvy_status cpu_eltwise_prepare(const struct cvy_device *device, const struct cvy_call *call, cpu_span *span,
                               const struct cvy_kernel_impl *impl, struct cvy_kernel **out,
                               size_t *scratch_bytes);
cvy_status cpu_eltwise_run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch);
void cpu_eltwise_release(struct cvy_kernel *kernel);

/* The kernel cpu_kernel_NAME of the operator NAME, by NAME_vector(y, a, b) on 16 elements. */
#define CPU_ELTWISE_KERNEL(name, choose_slot)                                                          \
    CPU_INLINE void name##_part(cpu_real *y, const cpu_real *a, const cpu_real *b, int width) {        \
        cpu_v16 v, w, result;                                                                          \
        cpu_load(&v, a, width);                                                                        \
        cpu_load(&w, b, width);                                                                        \
        name##_vector(&result, &v, &w);                                                                \
        cpu_store(y, &result, width);                                                                  \
    }                                                                                                  \
    CPU_VECTOR static void name##_span(cpu_real *y, const cpu_real *a, const cpu_real *b, int64_t n) { \
        int64_t i = 0;                                                                                 \
        for (; i + CPU_LANES <= n; i += CPU_LANES)                                                     \
            name##_part(y + i, a + i, b + i, CPU_LANES);                                               \
        name##_part(y + i, a + i, b + i, (int)(n - i));                                                \
    }                                                                                                  \
    static cvy_status prepare_##name(struct cvy_device *device, const struct cvy_call *call,           \
                                     struct cvy_kernel **out, size_t *scratch_bytes) {                 \
        return cpu_eltwise_prepare(device, call, name##_span, &CPU_REAL(cpu_kernel_##name), out,       \
                                   scratch_bytes);                                                     \
    }                                                                                                  \
    const struct cvy_kernel_impl CPU_REAL(cpu_kernel_##name) = {                                       \
        .op = #name,                                                                                   \
        .supports = CPU_SUPPORTS_REAL,                                                                 \
        .choose = choose_slot,                                                                         \
        .prepare = prepare_##name,                                                                     \
        .run = cpu_eltwise_run,                                                                        \
        .release = cpu_eltwise_release,                                                                \
    };

#endif
