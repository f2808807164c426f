/* Dimensions 1 and up of a shape as attributes. */
#include "ops/dims.h"
#include "ops/infer.h"

#define DIM(k)                                                                                      \
    {                                                                                               \
        "d" #k, CVY_ATTR_INT, offsetof(struct cvy_dims_attrs, d) + sizeof(int64_t) * (k - 1), 0, 0, \
            INT32_MAX, "dimension " #k " of the result; 0: it ends before"                          \
    }

const struct cvy_attr cvy_dims_attr_table[CVY_N_DIMS_ATTRS] = {DIM(1), DIM(2), DIM(3), DIM(4), DIM(5)};

struct cvy_dims_attrs cvy_dims_of(const struct cvy_shape *shape) {
    struct cvy_dims_attrs attrs = {0};
    for (int k = 1; k < shape->n; k++)
        attrs.d[k - 1] = shape->dim[k];
    return attrs;
}

struct cvy_shape cvy_dims_shape(const struct cvy_dims_attrs *attrs, int64_t n) {
    struct cvy_shape shape = {.n = 1, .dim = {n}};
    for (int k = 0; k < CVY_N_DIMS_ATTRS && attrs->d[k] > 0; k++)
        shape.dim[shape.n++] = attrs->d[k];
    return shape;
}
