/* Attributes of cast: the type it makes. */
#ifndef CVY_OPS_CAST_H
#define CVY_OPS_CAST_H

#include "graph/graph.h"

struct cvy_cast_attrs { /* neither: float32 */
    bool bf16, f16;
};

/* The attributes that make `to`: float32, bfloat16 or float16. */
static inline struct cvy_cast_attrs cvy_cast_to(cvy_dtype to) {
    return (struct cvy_cast_attrs){.bf16 = to == CVY_BF16, .f16 = to == CVY_F16};
}

#endif
