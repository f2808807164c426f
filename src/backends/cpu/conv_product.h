/* The weights' gradient of a 1x1 convolution as one product of matrices: in N,H,W,C its operands are matrices already,
   dweight [out,in] = dy [pixels,out]^T x [pixels,in]. With a stride, the pixels of x that count are gathered first. */
#ifndef CVY_CPU_CONV_PRODUCT_H
#define CVY_CPU_CONV_PRODUCT_H

#include "backends/cpu/primitive.h"
#include "ops/conv2d.h"

/* Can it be taken for a conv2d_backward_weights whose operands oneDNN's convolution lays out as in `call`? */
bool cpu_conv_product_fits(const struct cvy_call *call);
cvy_status cpu_conv_product_prepare(struct cvy_device *device, const struct cvy_call *call,
                                    struct cvy_kernel **out, size_t *scratch_bytes);

#endif
