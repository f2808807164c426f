/* What the kernels that call cuDNN and cuBLASLt share. */
#ifndef CONVOY_CUDA_LIBRARY_H
#define CONVOY_CUDA_LIBRARY_H

#include "cuda.h"
#include "layout.h"

#include "base/mem.h"

enum {
    CUDA_WORKSPACE_ALIGN = 256
}; /* what both libraries want; scratch memory is aligned to CVY_ALIGN alone */

/* The scratch memory that a workspace of n bytes takes, and where it begins in it. */
static inline size_t cuda_workspace_scratch(size_t n) { return n ? n + CUDA_WORKSPACE_ALIGN - CVY_ALIGN : 0; }
static inline void *cuda_workspace(void *scratch) {
    return (void *)cvy_align_up((uintptr_t)scratch, CUDA_WORKSPACE_ALIGN);
}

/* supports: all operands of floating-point type are float32. */
bool cuda_supports_f32(const struct cvy_device *device, const struct cvy_call *call);

/* A tensor of rank 4 in nhwc; any other as rows of its last dimension, [rows,last,1,1]. The descriptor belongs to the
   caller, also after a failure. */
cvy_status cuda_tensor_new(struct cuda_device *me, const struct cvy_desc *desc,
                           const struct cvy_layout *layout, cudnnTensorDescriptor_t *out);

#endif
