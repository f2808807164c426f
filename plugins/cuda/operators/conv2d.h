/* conv2d and its two gradients by functions of our own: for what cuDNN has no deterministic algorithm. */
#ifndef CONVOY_CUDA_CONV2D_H
#define CONVOY_CUDA_CONV2D_H

#include "operator.h"

/* x, w and y are the call's operands in these roles. */
cvy_status cuda_conv_own(struct cvy_device *device, const struct cvy_call *call,
                         const struct cvy_operand_spec *x, const struct cvy_operand_spec *y,
                         struct cvy_kernel **out, size_t *scratch_bytes);

#endif
