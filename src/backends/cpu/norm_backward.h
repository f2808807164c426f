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
struct cpu_norm_channels { /* of all channels */
    const float *weight, *mean, *var;
    double eps;
};
struct cpu_norm_tensors { /* absent ones are NULL */
    const cpu_real *dy, *x;
    const uint8_t *mask;
    cpu_real *dx, *dresidual;
    bool is_plain; /* all lanes are of one channel */
};

#define cpu_norm_sums_cell CPU_REAL(cpu_norm_sums_cell)
#define cpu_norm_sums_join CPU_REAL(cpu_norm_sums_join)
#define cpu_norm_slope_make CPU_REAL(cpu_norm_slope_make)
#define cpu_norm_slope_cell CPU_REAL(cpu_norm_slope_cell)
#define cpu_norm_backward_choose CPU_REAL(cpu_norm_backward_choose)

/* What a cell of the grid has of its blocks, out[block]; `means` of all channels. */
void cpu_norm_sums_cell(const struct cpu_norm_tensors *tensors, const float *means, const struct cpu_view *v,
                        const struct cpu_cell *cell, struct cpu_norm_sums *out);
/* A block's sums of all image parts: sums[image_part][block]. */
void cpu_norm_sums_join(const struct cpu_norm_sums *sums, const struct cpu_view *v, int image_parts,
                        int64_t block, struct cpu_norm_sums *out);
/* The slope of a block's channels from its sums over m values: gain = weight invstd, offset = gain sum u / m, tilt =
   gain invstd^2 sum ud / m; with m = 0 (normalised by constants) offset and tilt are 0. */
void cpu_norm_slope_make(const struct cpu_norm_sums *sums, double m, const struct cpu_norm_channels *channels,
                         const struct cpu_view *v, int64_t block, struct cpu_norm_slope *out);
/* dx and dresidual of a cell; the slopes from its first block on, at most CPU_GROUP. */
void cpu_norm_slope_cell(const struct cpu_norm_tensors *tensors, const struct cpu_norm_slope *slopes,
                         const struct cpu_view *v, const struct cpu_cell *cell);

/* x, input 1 of all kernels with these loops, was laid out by the forward pass, and its mask with it. */
cvy_status cpu_norm_backward_choose(struct cvy_device *device, struct cvy_call *call);

#endif
