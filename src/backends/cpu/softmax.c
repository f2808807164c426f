/* softmax over the last dimension, and its gradient. */
#include "backends/cpu/softmax.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/rows.h"

CPU_VECTOR static void softmax_rows(const struct cpu_rows *me, int64_t first, int64_t end) {
    const float *x = me->in[0];
    float *y = me->out[0];
    for (int64_t r = first; r < end; r++)
        cpu_softmax_row(x + r * me->n, me->n, y + r * me->n);
}

/* The sum of dy y. */
CPU_INLINE double dot(const float *dy, const float *y, int64_t n) {
    double sums[CPU_LANES] = {0};
    int64_t k = 0;
    for (; k + CPU_LANES <= n; k += CPU_LANES)
        CPU_EACH_LANE(l) sums[l] += (double)dy[k + l] * (double)y[k + l];
    for (int l = 0; k < n; k++, l++)
        sums[l] += (double)dy[k] * (double)y[k];
    return cpu_fold_lanes(sums);
}

/* dx = y (dy - dot); dx may be dy */
CPU_VECTOR static void softmax_backward_rows(const struct cpu_rows *me, int64_t first, int64_t end) {
    for (int64_t r = first; r < end; r++) {
        const float *dy = (const float *)me->in[0] + r * me->n, *y = (const float *)me->in[1] + r * me->n;
        float *dx = (float *)me->out[0] + r * me->n, sum = (float)dot(dy, y, me->n);
        for (int64_t k = 0; k < me->n; k++)
            dx[k] = y[k] * (dy[k] - sum);
    }
}

CPU_ROWS_KERNEL(softmax, .row = CPU_ROW_LAST, .span = softmax_rows)
CPU_ROWS_KERNEL(softmax_backward, .row = CPU_ROW_LAST, .span = softmax_backward_rows)
