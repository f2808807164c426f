/* Initial values of parameters: a function of (seed, name) alone, so that they do not depend on the order in which
   parameters are made, nor on who makes them. */
#ifndef CVY_GRAPH_INIT_H
#define CVY_GRAPH_INIT_H

#include "graph/graph.h"

/* Fills out[cvy_shape_count(&desc->shape)] for the float32 value `name`. CVY_ERR_USAGE when it has another type.
   Local, any thread. */
cvy_status cvy_init_fill(uint64_t seed, const char *name, const struct cvy_desc *desc,
                         const struct cvy_init *init, float *out);

#endif
