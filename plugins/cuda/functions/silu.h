/* y = x s with s = 1 / (1 + exp(-x)); its gradient, s + x s (1 - s), by x */
#include "functions/activation.h"

CUDA_BODY float silu_of(float x) { return x / (1 + expf(-x)); }
CUDA_BODY float silu_slope(float x) {
    float s = 1 / (1 + expf(-x));
    return s + x * s * (1 - s);
}
ACTIVATION_BODIES(silu)
