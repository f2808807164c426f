/* A oneDNN primitive as a backend kernel: which argument is which operand is said once, when it is made. */
#ifndef CVY_CPU_PRIMITIVE_H
#define CVY_CPU_PRIMITIVE_H

#include "backends/cpu/cpu.h"

enum { CPU_MAX_ARGS = 8 };

struct cpu_argument {
    int id;      /* DNNL_ARG_… */
    int operand; /* input i is i, output o is CPU_OUT(o) */
};
#define CPU_OUT(o) (-1 - (o))

/* Makes the kernel and takes `pd` over, also on failure. Operands that are absent in `call` are left out.
   Called by the device's thread. */
cvy_status cpu_primitive_new(struct cvy_device *device, const struct cvy_kernel_impl *impl,
                             const struct cvy_call *call, dnnl_primitive_desc_t pd,
                             const struct cpu_argument *arguments, int n, struct cvy_kernel **out,
                             size_t *scratch_bytes);

/* Makes the reorders of all pairs of types known to oneDNN, before two threads can look for them at once (reorder.c).
   Nobody else is calling oneDNN for the first time meanwhile. */
void cpu_reorder_settle(dnnl_engine_t engine);

/* Slots of every kernel that is one primitive. */
cvy_status cpu_primitive_run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch);
void cpu_primitive_release(struct cvy_kernel *kernel);

/* The layout that a primitive descriptor gives to argument `id`, into an operand. */
cvy_status cpu_primitive_layout(const_dnnl_primitive_desc_t pd, int id, struct cvy_operand_spec *operand);

#endif
