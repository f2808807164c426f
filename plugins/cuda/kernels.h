/* The operators that the plugin has kernels for: kernels.def. */
#ifndef CONVOY_CUDA_KERNELS_H
#define CONVOY_CUDA_KERNELS_H

#include "rt/backend.h"

#define CUDA_KERNEL(name) extern const struct cvy_kernel_impl cuda_kernel_##name;
#include "kernels.def"
#undef CUDA_KERNEL

#endif
