/* Shared by the operators: checks of shape inference, costs, checks of gradients. */
#ifndef CVY_OPS_INFER_H
#define CVY_OPS_INFER_H

#include "graph/graph.h"
#include "graph/op.h"

enum { CVY_MAX_SIZE = 1 << 20 }; /* the largest kernel, stride, image side … that an attribute accepts */

/* Was the optional input i given? An absent one has the zeroed description, or is left off the end. */
bool cvy_infer_has(const struct cvy_infer *call, int i);

/* CVY_ERR_USAGE, "conv2d(x f32[2,3,8,8], weight f32[4,2,3,3]): REASON". */
cvy_status cvy_infer_fail(const struct cvy_infer *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Input i must be floating point, and of this shape (NULL: any). */
cvy_status cvy_infer_float(const struct cvy_infer *call, int i, const struct cvy_shape *shape);
/* Input i must have this very type, and this shape (NULL: any). */
cvy_status cvy_infer_typed(const struct cvy_infer *call, int i, cvy_dtype dtype,
                           const struct cvy_shape *shape);
/* Input i must be floating point and have `rank` dimensions, none of them 0. */
cvy_status cvy_infer_rank(const struct cvy_infer *call, int i, int rank);

/* The whole inference of y = f(x) of one shape, and of dx = f'(dy, like) of one shape. */
cvy_status cvy_infer_unary(struct cvy_infer *call);
cvy_status cvy_infer_binary(struct cvy_infer *call);
/* The whole inference of an optimiser's group: all of the parameter's shape. */
cvy_status cvy_infer_optimizer(struct cvy_infer *call);

struct cvy_desc cvy_desc_make(cvy_dtype dtype, struct cvy_shape shape);

/* flops as given, bytes = all operands. */
void cvy_cost_fill(const struct cvy_infer *call, double flops, struct cvy_cost *out);
/* One operation per element of output 0. */
void cvy_cost_elementwise(const struct cvy_infer *call, struct cvy_cost *out);

/* Only output 0 of an operator is differentiable: CVY_ERR_UNSUPPORTED when another one has a gradient. */
cvy_status cvy_grad_check(const struct cvy_graph *g, const struct cvy_node *node, const cvy_value *gout);

#define CVY_N(array) ((int)(sizeof(array) / sizeof *(array)))

#endif
