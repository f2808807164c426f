/* param -= rate ratio step.
   in: rates, param, m, v, the new ones, ratio; out: param; number: as lamb_moments */
#include "functions/lamb_step.h"

CUDA_BODY void lamb_map(const struct cuda_args *a, int64_t i) {
    float param = cuda_load(a, 1, i), step = lamb_step(a, param, cuda_load(a, 2, i), cuda_load(a, 3, i));
    cuda_store(a, 0, i, param - cuda_load(a, 0, 0) * cuda_load(a, 4, 0) * step);
}
