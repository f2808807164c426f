/* One row of softmax, which softmax and cross_entropy share. */
#ifndef CVY_CPU_SOFTMAX_H
#define CVY_CPU_SOFTMAX_H

#include "backends/cpu/vector.h"

struct cpu_softmax {
    float largest; /* of the row; subtracted, so that exp cannot overflow */
    double sum;    /* of exp(x - largest) */
    double below;  /* sum of x - largest */
};

/* NaN is passed over: it shows in the sums. */
CPU_INLINE float cpu_row_largest(const float *x, int64_t n) {
    float largest[CPU_LANES];
    CPU_EACH_LANE(l) largest[l] = x[0];
    int64_t k = 0;
    for (; k + CPU_LANES <= n; k += CPU_LANES)
        CPU_EACH_LANE(l) largest[l] = x[k + l] > largest[l] ? x[k + l] : largest[l];
    for (int l = 0; k < n; k++, l++)
        largest[l] = x[k] > largest[l] ? x[k] : largest[l];
    for (int l = 1; l < CPU_LANES; l++)
        largest[0] = largest[l] > largest[0] ? largest[l] : largest[0];
    return largest[0];
}

/* One vector of the row: y = exp(x - largest), into the sums as well. */
CPU_INLINE void cpu_softmax_vector(const float *x, float *y, float largest, const int width, double *sum,
                                   double *below) {
    cpu_v16 v;
    cpu_load(&v, x, width);
    v -= largest;
    cpu_trim(&v, width);
    cpu_add_lanes(below, &v);
    cpu_exp(&v);
    cpu_trim(&v, width);
    cpu_add_lanes(sum, &v);
    if (y)
        cpu_store(y, &v, width);
}

/* y = softmax(x) over n classes; y may be x. y NULL: only the sums. */
CPU_INLINE struct cpu_softmax cpu_softmax_row(const float *x, int64_t n, float *y) {
    double sum[CPU_LANES] = {0}, below[CPU_LANES] = {0};
    struct cpu_softmax row = {.largest = cpu_row_largest(x, n)};
    int64_t k = 0;
    for (; k + CPU_LANES <= n; k += CPU_LANES)
        cpu_softmax_vector(x + k, y ? y + k : NULL, row.largest, CPU_LANES, sum, below);
    if (k < n)
        cpu_softmax_vector(x + k, y ? y + k : NULL, row.largest, (int)(n - k), sum, below);
    row.sum = cpu_fold_lanes(sum);
    row.below = cpu_fold_lanes(below);
    float scale = (float)(1 / row.sum);
    for (k = 0; k < n && y; k++)
        y[k] *= scale;
    return row;
}

#endif
