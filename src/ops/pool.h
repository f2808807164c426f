/* Attributes of max_pool, avg_pool and their gradients (one struct), and of adaptive_avg_pool and its own. */
#ifndef CVY_OPS_POOL_H
#define CVY_OPS_POOL_H

#include <stdbool.h>
#include <stdint.h>

struct cvy_pool_attrs {
    int64_t kernel[2];
    int64_t stride[2]; /* 0: the kernel's; read it through cvy_pool_stride */
    int64_t padding[2];
    int64_t dilation[2];    /* max_pool alone; 1 otherwise */
    bool ceil_mode;         /* a last window may hang over the end */
    bool count_include_pad; /* avg_pool alone: padding counts in the divisor */
    int64_t input[2];       /* gradients alone: height and width of x */
};

static inline int64_t cvy_pool_stride(const struct cvy_pool_attrs *attrs, int axis) {
    return attrs->stride[axis] > 0 ? attrs->stride[axis] : attrs->kernel[axis];
}

struct cvy_adaptive_pool_attrs {
    int64_t output[2];
    int64_t input[2]; /* the gradient alone: height and width of x */
};

#endif
