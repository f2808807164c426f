/* gelu and its gradient, the exact ones: y = x P(x) and y' = P(x) + x p(x), with the normal distribution's
   P(x) = erfc(-x / sqrt(2)) / 2 and p(x) = exp(-x^2 / 2) / sqrt(2 pi). */
#include "ops/activation.h"

#include <math.h>

static const double half_root = 0.70710678118654752440;    /* 1 / sqrt(2) */
static const double density_at_0 = 0.39894228040143267794; /* 1 / sqrt(2 pi) */

static double f(double x) { return x * 0.5 * erfc(-x * half_root); }

static double slope(double x) { return 0.5 * erfc(-x * half_root) + x * density_at_0 * exp(-x * x / 2); }

CVY_ACTIVATION(gelu, x, "y = x P(x), P the normal distribution's (exact, not by tanh)",
               "dx = dy (P(x) + x p(x)), p the normal density")
