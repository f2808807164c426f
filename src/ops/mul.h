/* Attributes of mul_backward. */
#ifndef CVY_OPS_MUL_H
#define CVY_OPS_MUL_H

#include "graph/op.h"

struct cvy_mul_attrs {
    bool per_image; /* each image has its own factors: N,C,1,1; else C,1,1 */
};

#endif
