/* Which algorithm a convolution takes: a fixed rule on its shape, never a measurement of the moment, so that two
   runs agree. */
#ifndef CVY_CPU_CONV_RULE_H
#define CVY_CPU_CONV_RULE_H

#include "ops/conv2d.h"

#include <stdbool.h>
#include <stdint.h>

enum cpu_conv_pass { CPU_CONV_FORWARD, CPU_CONV_BACKWARD_DATA, CPU_CONV_BACKWARD_WEIGHTS };

struct cpu_conv_shape {
    int64_t batch; /* of the largest shard of the run, not of this one */
    int64_t in_channels, out_channels, out_height, out_width;
};

/* conv_algo: see ops/conv_algo.h (NULL: auto). True: Winograd, if oneDNN has it for this call.
   Winograd computes tiles of 4x4 results by 6x6 products: 3x3 kernels of stride 1 only. It pays when there are
   enough channels (64 each way) and, because its transformed weights are 4 times as large as the weights, enough
   tiles to use each of them on. */
bool cpu_conv_rule(const char *conv_algo, enum cpu_conv_pass pass, const struct cvy_conv2d_attrs *attrs,
                   const struct cpu_conv_shape *shape);
/* Time of Winograd over direct, roughly: for estimates. */
double cpu_winograd_time(const struct cpu_conv_shape *shape);

#endif
