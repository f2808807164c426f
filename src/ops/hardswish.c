/* hardswish and its gradient. */
#include "ops/activation.h"

static double f(double x) { return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6; }

static double slope(double x) { return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5; }

CVY_ACTIVATION(hardswish, x, "y = x min(max(x + 3, 0), 6) / 6",
               "dx = 0 where x <= -3, dy where x >= 3, else dy (x / 3 + 1/2)")
