/* sigmoid and its gradient, which looks at y alone. */
#include "ops/activation.h"

#include <math.h>

static double f(double x) { return 1 / (1 + exp(-x)); }

static double slope(double y) { return y * (1 - y); }

CVY_ACTIVATION(sigmoid, y, "y = 1 / (1 + exp(-x))", "dx = dy y (1 - y)")
