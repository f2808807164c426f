/* Convolutions and products by functions of our own, conv_forward and its gradients: plain sums, slow, but of any
   shape. For what cuDNN has no deterministic algorithm, and cuBLASLt none at all. */
#ifndef CONVOY_CUDA_OWN_PRODUCTS_H
#define CONVOY_CUDA_OWN_PRODUCTS_H

#include "operator.h"

/* x and y are the call's operands in these roles; the third is the weights. */
cvy_status cuda_own_conv(struct cvy_device *device, const struct cvy_call *call,
                         const struct cvy_operand_spec *x, const struct cvy_operand_spec *y,
                         struct cvy_kernel **out, size_t *scratch_bytes);
cvy_status cuda_own_linear(struct cvy_device *device, const struct cvy_call *call,
                           const struct cvy_operand_spec *x, const struct cvy_operand_spec *y,
                           struct cvy_kernel **out, size_t *scratch_bytes);

#endif
