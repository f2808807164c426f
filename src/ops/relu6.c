/* relu6 and its gradient, which looks at y alone: at 0 and 6 it is 0. NaN stays NaN. */
#include "ops/activation.h"

static double f(double x) { return x <= 0 ? 0 : x >= 6 ? 6 : x; }

static double slope(double y) { return y > 0 && y < 6; }

CVY_ACTIVATION(relu6, y, "y = min(max(x, 0), 6)", "dx = dy where 0 < y < 6, else 0")
