/* mean over everything but the batch, and its gradient. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/rows.h"

CPU_VECTOR static void mean_rows(const struct cpu_rows *me, int64_t first, int64_t end) {
    cpu_real *y = me->out[0];
    for (int64_t i = first; i < end; i++) {
        const cpu_real *x = (const cpu_real *)me->in[0] + i * me->n;
        double sums[CPU_LANES] = {0};
        int64_t k = 0;
        for (; k + CPU_LANES <= me->n; k += CPU_LANES)
            CPU_EACH_LANE(l) sums[l] += (double)cpu_widen(x[k + l]);
        for (int l = 0; k < me->n; k++, l++)
            sums[l] += (double)cpu_widen(x[k]);
        y[i] = cpu_narrow((float)(cpu_fold_lanes(sums) / (double)me->n));
    }
}

static void mean_backward_rows(const struct cpu_rows *me, int64_t first, int64_t end) {
    const cpu_real *dy = me->in[0];
    for (int64_t i = first; i < end; i++) {
        cpu_real *dx = (cpu_real *)me->out[0] + i * me->n;
        cpu_real each = cpu_narrow((float)((double)cpu_widen(dy[i]) / (double)me->n));
        for (int64_t k = 0; k < me->n; k++)
            dx[k] = each;
    }
}

CPU_ROWS_KERNEL(mean, .row = CPU_ROW_IMAGE, .span = mean_rows)
CPU_ROWS_KERNEL(mean_backward, .of_output = true, .row = CPU_ROW_IMAGE, .span = mean_backward_rows)
