/* y = x P(x) with P(x) = erfc(-x / sqrt(2)) / 2; its gradient, P(x) + x exp(-x^2 / 2) / sqrt(2 pi), by x */
#include "functions/activation.h"

CUDA_BODY float gelu_below(float x) { return 0.5f * erfcf(x * -0.70710678f); }
CUDA_BODY float gelu_of(float x) { return x * gelu_below(x); }
CUDA_BODY float gelu_slope(float x) { return gelu_below(x) + x * 0.39894228f * expf(-0.5f * x * x); }
ACTIVATION_BODIES(gelu)
