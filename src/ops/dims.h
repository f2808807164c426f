/* The attributes of operators that give a tensor back its shape: dimensions 1 and up. Dimension 0, the batch,
   comes from the input, so that the graph serves any shard size. */
#ifndef CVY_OPS_DIMS_H
#define CVY_OPS_DIMS_H

#include "graph/op.h"

enum { CVY_N_DIMS_ATTRS = CVY_MAX_DIMS - 1 };

struct cvy_dims_attrs {
    int64_t d[CVY_N_DIMS_ATTRS]; /* 0: no such dimension */
};

/* Their table, "d1" to "d5". */
extern const struct cvy_attr cvy_dims_attr_table[CVY_N_DIMS_ATTRS];

/* The attributes that restore `shape`, and the shape that they give a batch of n. */
struct cvy_dims_attrs cvy_dims_of(const struct cvy_shape *shape);
struct cvy_shape cvy_dims_shape(const struct cvy_dims_attrs *attrs, int64_t n);

#endif
