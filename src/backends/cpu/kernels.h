/* Every kernel of this backend: CPU_KERNEL(NAME) in kernels.def is the struct cpu_kernel_NAME of some file;
   CPU_KERNEL_REAL(NAME) that and cpu_kernel_NAME_bf16, from a file that is compiled for each type (real.h). */
#ifndef CVY_CPU_KERNELS_H
#define CVY_CPU_KERNELS_H

#include "rt/backend.h"

#define CPU_KERNEL(name) extern const struct cvy_kernel_impl cpu_kernel_##name;
#define CPU_KERNEL_REAL(name) CPU_KERNEL(name) CPU_KERNEL_BF16(name)
#define CPU_KERNEL_BF16(name) extern const struct cvy_kernel_impl cpu_kernel_##name##_bf16;
#include "backends/cpu/kernels.def"
#undef CPU_KERNEL
#undef CPU_KERNEL_REAL
#undef CPU_KERNEL_BF16

#endif
