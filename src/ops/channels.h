/* Operators that move whole channels of N,C,…: concat, channel_slice, channel_shuffle. */
#ifndef CVY_OPS_CHANNELS_H
#define CVY_OPS_CHANNELS_H

#include "ops/infer.h"

struct cvy_channel_slice_attrs {
    int64_t first, count; /* channels first … first + count - 1 of x */
    int64_t channels;     /* all that x has; for the gradient */
};

struct cvy_channel_shuffle_attrs {
    int64_t groups;
};

/* The channel of x that channel c of y is: the channels, as a matrix with a row for each group, are transposed. */
static inline int64_t cvy_channel_shuffled(int64_t channels, int64_t groups, int64_t c) {
    return c % groups * (channels / groups) + c / groups;
}

/* Of the reference kernels: `count` channels from number `from_first` on become those of `to` from `to_first` on. */
void cvy_channels_copy(double *to, const struct cvy_shape *to_shape, int64_t to_first, const double *from,
                       const struct cvy_shape *from_shape, int64_t from_first, int64_t count);

#endif
