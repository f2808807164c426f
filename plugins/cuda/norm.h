/* What batch_norm's operators share: a channel's numbers for the pass over its elements, in the plan's table. */
#ifndef CONVOY_CUDA_NORM_H
#define CONVOY_CUDA_NORM_H

#include "functions.h"

#include <stdbool.h>

/* A channel has four numbers, loaded at once. */
enum { NORM_MEAN, NORM_SCALE, NORM_BIAS };                 /* of the forward pass */
enum { SLOPE_GAIN, SLOPE_OFFSET, SLOPE_TILT, SLOPE_MEAN }; /* of the backward pass */

CUDA_BODY struct cuda_quad_f32 cuda_norm_of(const void *table, int64_t c) {
    return ((const struct cuda_quad_f32 *)table)[c];
}

/* The forward pass: y = (x - mean) scale + bias, scale = weight / sqrt(var + eps). */
CUDA_BODY void cuda_norm_put(void *table, int64_t c, double mean, double scale, float bias) {
    struct cuda_quad_f32 *of_channel = (struct cuda_quad_f32 *)table + c;
    of_channel->at[NORM_MEAN] = (float)mean;
    of_channel->at[NORM_SCALE] = (float)scale;
    of_channel->at[NORM_BIAS] = bias;
}

/* A channel's mean and var, and its row of `stats`: {n mean, n unbiased variance}, n in the end. has_stats: there is an
   unbiased variance. Absent outputs are NULL. */
CUDA_BODY void cuda_norm_stats(float *stats, int64_t channels, int64_t c, bool has_stats, double images,
                               double mean, double unbiased) {
    if (!stats)
        return;
    stats[c] = has_stats ? (float)(images * mean) : 0;
    stats[channels + c] = has_stats ? (float)(images * unbiased) : 0;
    if (c == 0)
        stats[2 * channels] = has_stats ? (float)images : 0;
}

/* The backward pass: dx = gain u - offset - tilt (x - mean), with gain = weight / sqrt(var + eps), offset = gain U / m,
   tilt = gain D / ((var + eps) m); U = sum u, D = sum u (x - mean) over m values. m = 0: constants normalised, so that
   neither depends on x. */
CUDA_BODY void cuda_norm_slope(void *table, int64_t c, const double sums[2], double m, double weight,
                               double mean, double var, double eps) {
    double gain = weight / sqrt(var + eps);
    struct cuda_quad_f32 *slope = (struct cuda_quad_f32 *)table + c;
    slope->at[SLOPE_GAIN] = (float)gain;
    slope->at[SLOPE_OFFSET] = m > 0 ? (float)(gain * sums[0] / m) : 0;
    slope->at[SLOPE_TILT] = m > 0 ? (float)(gain / (var + eps) * sums[1] / m) : 0;
    slope->at[SLOPE_MEAN] = (float)mean;
}

#endif
