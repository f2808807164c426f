/* The loops of batch_norm's gradients; with u = dy behind the relu:
     sums over each channel of u and u (x - mean), then dx = gain u - offset - tilt (x - mean), and dresidual = u. */
#ifndef CVY_CPU_NORM_BACKWARD_H
#define CVY_CPU_NORM_BACKWARD_H

#include "backends/cpu/grid.h"

struct cpu_norm_sums { /* of the channels of one block */
    double u[CPU_LANES], ud[CPU_LANES];
};
struct cpu_norm_slope { /* per lane */
    cpu_v16 gain, offset, tilt, mean;
};
struct cpu_norm_tensors { /* absent ones are NULL */
    const float *dy, *x;
    const uint8_t *mask;
    float *dx, *dresidual;
    bool is_plain; /* all lanes are of one channel */
};

/* What a cell of the grid has of a block; `means` of all channels. */
void cpu_norm_sums_block(const struct cpu_norm_tensors *tensors, const float *means, const struct cpu_view *v,
                         const struct cpu_cell *cell, int64_t block, struct cpu_norm_sums *out);
/* dx and dresidual of a cell's part of a block. */
void cpu_norm_slope_block(const struct cpu_norm_tensors *tensors, const struct cpu_norm_slope *slope,
                          const struct cpu_view *v, const struct cpu_cell *cell, int64_t block);

#endif
