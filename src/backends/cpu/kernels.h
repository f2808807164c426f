/* Every kernel of this backend: CPU_KERNEL(NAME) in kernels.def is the struct cpu_kernel_NAME of some file. */
#ifndef CVY_CPU_KERNELS_H
#define CVY_CPU_KERNELS_H

#include "rt/backend.h"

#define CPU_KERNEL(name) extern const struct cvy_kernel_impl cpu_kernel_##name;
#include "backends/cpu/kernels.def"
#undef CPU_KERNEL

#endif
