/* ratio = |param| / |step|; 1 where one of the norms is 0, and without weight decay. All of the parameter is one row.
   in: rates, param, m, v, the new ones; out: ratio; number: as lamb_moments */
#include "functions/lamb_step.h"

CUDA_BODY void lamb_ratio_value(const struct cuda_args *a, int64_t row, int64_t k, float *values) {
    float param = cuda_load(a, 1, k);
    float step = lamb_step(a, param, cuda_load(a, 2, k), cuda_load(a, 3, k));
    (void)row;
    values[0] = param * param;
    values[1] = step * step;
}

CUDA_BODY void lamb_ratio_finish(const struct cuda_args *a, int64_t row, const double *sums) {
    bool is_adapted = a->number[5] != 0 && sums[0] > 0 && sums[1] > 0;
    cuda_store(a, 0, row, (float)(is_adapted ? sqrt(sums[0]) / sqrt(sums[1]) : 1));
}
