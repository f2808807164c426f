/* y = x min(max(x + 3, 0), 6) / 6; its gradient, by x */
#include "functions/activation.h"

CUDA_BODY float hardswish_of(float x) { return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6; }
CUDA_BODY float hardswish_slope(float x) { return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5f; }
ACTIVATION_BODIES(hardswish)
