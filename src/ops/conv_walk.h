/* The arithmetic that conv2d and its two gradients share.
   All three are one sum over taps, y[n,o,p,q] x[n,i,p s + k d - pad,…] w[o,i,k,l]: forward adds x w into y,
   the gradient of the data adds y w into x, that of the weights adds y x into w. So the reference walks the
   taps once, and a row function says which of the three is the sum. */
#ifndef CVY_OPS_CONV_WALK_H
#define CVY_OPS_CONV_WALK_H

#include "graph/shape.h"
#include "ops/conv2d.h"
#include "ops/window.h"

enum cvy_conv_sum { CVY_CONV_FORWARD, CVY_CONV_DATA, CVY_CONV_WEIGHTS };

struct cvy_conv { /* the operands; whichever is not the sum is only read */
    const struct cvy_conv2d_attrs *a;
    double *x, *w, *y;
    const struct cvy_shape *x_shape, *y_shape; /* N,C,H,W  N,O,P,Q */
};

/* Adds every product to the sum, whose start the caller has set. */
void cvy_conv_walk(const struct cvy_conv *c, enum cvy_conv_sum sum);

/* The window along one axis (0: height) of an image side of `in`. */
struct cvy_window cvy_conv_window(const struct cvy_conv2d_attrs *a, int axis, int64_t in);

#endif
