/* y = min(max(x + 3, 0), 6) / 6, NaN stays; its gradient, by y */
#include "functions/activation.h"

CUDA_BODY float hardsigmoid_of(float x) { return x <= -3 ? 0 : x >= 3 ? 1 : x / 6 + 0.5f; }
CUDA_BODY float hardsigmoid_slope(float y) { return y > 0 && y < 1 ? 1.f / 6 : 0; }
ACTIVATION_BODIES(hardsigmoid)
