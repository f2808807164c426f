/* hardsigmoid and its gradient, which looks at y alone: at 0 and 1 it is 0. NaN stays NaN. */
#include "ops/activation.h"

static double f(double x) { return x <= -3 ? 0 : x >= 3 ? 1 : x / 6 + 0.5; }

static double slope(double y) { return y > 0 && y < 1 ? 1.0 / 6 : 0; }

CVY_ACTIVATION(hardsigmoid, y, "y = min(max(x + 3, 0), 6) / 6", "dx = dy / 6 where 0 < y < 1, else 0")
