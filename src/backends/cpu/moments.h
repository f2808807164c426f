/* Moments of channels: count, mean and M2, the sum of squared deviations from the mean. In two passes over cached data
   for each chunk; chunks, parts of threads and shards are merged in a fixed order by Chan's formula; never
   E[x^2] - E[x]^2. */
#ifndef CVY_CPU_MOMENTS_H
#define CVY_CPU_MOMENTS_H

#include "backends/cpu/grid.h"

struct cpu_moments { /* of the channels of one block */
    double n, mean[CPU_LANES], m2[CPU_LANES];
};

#define cpu_moments_cell CPU_REAL(cpu_moments_cell)
#define cpu_moments_merge CPU_REAL(cpu_moments_merge)

/* What a cell of the grid has of its blocks; out[block]. */
void cpu_moments_cell(const cpu_real *x, const struct cpu_view *view, const struct cpu_cell *cell,
                      struct cpu_moments *out);
/* a becomes both together. No values on one side change nothing. */
void cpu_moments_merge(struct cpu_moments *a, const struct cpu_moments *b, int n_channels);

#endif
