/* What lamb and lamb_ratio share. */
#ifndef CONVOY_CUDA_LAMB_STEP_H
#define CONVOY_CUDA_LAMB_STEP_H

#include "functions.h"

/* With the rates in[0], {rate, mean, root}: step = mean m / (sqrt(v) root + eps) + weight_decay param.
   number: as lamb_moments */
CUDA_BODY float lamb_step(const struct cuda_args *a, float param, float m, float v) {
    return cuda_load(a, 0, 1) * m / (sqrtf(v) * cuda_load(a, 0, 2) + a->number[4]) + a->number[5] * param;
}

#endif
