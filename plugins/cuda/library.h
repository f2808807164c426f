/* What the kernels that call cuDNN and cuBLASLt share. */
#ifndef CONVOY_CUDA_LIBRARY_H
#define CONVOY_CUDA_LIBRARY_H

#include "cuda.h"
#include "functions.h"
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

/* supports: as cuda_supports_half, and all floating-point operands of one type; _products: inputs 0 and 1 of one. */
bool cuda_supports_alike(const struct cvy_device *device, const struct cvy_call *call);
bool cuda_supports_products(const struct cvy_device *device, const struct cvy_call *call);

static inline enum cuda_type cuda_type_of(cvy_dtype type) {
    return type == CVY_BF16 ? CUDA_BF16 : type == CVY_F16 ? CUDA_F16 : CUDA_F32;
}
static inline cudnnDataType_t cuda_dnn_type(cvy_dtype type) {
    return type == CVY_BF16 ? CUDNN_DATA_BFLOAT16 : type == CVY_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

struct cuda_bias {       /* what is added to y, whose channels are innermost; channels 0: nothing */
    int64_t channels, n; /* n: elements of y */
    cvy_dtype y_type, type;
};
/* Of input 2 of a call whose output 0 is y; channels 0 when it is not given. */
struct cuda_bias cuda_bias_of(const struct cvy_call *call, int64_t channels);
/* y += bias[channel], in place, when there is one. */
cvy_status cuda_add_bias(struct cuda_device *me, const struct cuda_bias *bias, void *y, const void *values);

/* The same values in another type, n of them. */
cvy_status cuda_cast(struct cuda_device *me, int64_t n, cvy_dtype from_type, const void *from,
                     cvy_dtype to_type, void *to);

/* A tensor of rank 4 in nhwc; any other as rows of its last dimension, [rows,last,1,1]. The descriptor belongs to the
   caller, also after a failure. */
cvy_status cuda_tensor_new(struct cuda_device *me, const struct cvy_desc *desc,
                           const struct cvy_layout *layout, cudnnTensorDescriptor_t *out);

#endif
