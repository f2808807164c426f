/* silu (swish) and its gradient: with s = 1 / (1 + exp(-x)), y = x s and y' = s + x s (1 - s). */
#include "ops/activation.h"

#include <math.h>

static double f(double x) { return x / (1 + exp(-x)); }

static double slope(double x) {
    double s = 1 / (1 + exp(-x));
    return s + x * s * (1 - s);
}

CVY_ACTIVATION(silu, x, "y = x s(x), s the sigmoid", "dx = dy (s(x) + x s(x) (1 - s(x)))")
