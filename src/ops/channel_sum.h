/* Attributes of channel_sum: the gradient of a bias. */
#ifndef CVY_OPS_CHANNEL_SUM_H
#define CVY_OPS_CHANNEL_SUM_H

#include <stdint.h>

struct cvy_channel_sum_attrs {
    int64_t axis; /* the one that is kept: 1 is a convolution's channels, -1 the last (linear's features) */
};

#endif
