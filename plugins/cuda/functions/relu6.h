/* y = min(max(x, 0), 6), NaN stays; its gradient, by y */
#include "functions/activation.h"

CUDA_BODY float relu6_of(float x) { return x <= 0 ? 0 : x >= 6 ? 6 : x; }
CUDA_BODY float relu6_slope(float y) { return y > 0 && y < 6 ? 1 : 0; }
ACTIVATION_BODIES(relu6)
