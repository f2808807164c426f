/* y = 1 / (1 + exp(-x)); its gradient, by y */
#include "functions/activation.h"

CUDA_BODY float sigmoid_of(float x) { return 1 / (1 + expf(-x)); }
CUDA_BODY float sigmoid_slope(float y) { return y * (1 - y); }
ACTIVATION_BODIES(sigmoid)
