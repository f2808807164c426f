/* Attributes of conv2d, conv2d_backward_data and conv2d_backward_weights: one struct for all three, so that a
   gradient copies its forward's. */
#ifndef CVY_OPS_CONV2D_H
#define CVY_OPS_CONV2D_H

#include <stdbool.h>
#include <stdint.h>

struct cvy_conv2d_attrs {
    int64_t kernel[2], stride[2], padding[2], dilation[2]; /* height, width */
    int64_t groups;
    bool pointwise;   /* the weight is a matrix O,I, as of nn.Linear, which is applied to each pixel */
    int64_t input[2]; /* conv2d_backward_data alone: height and width of x, which dy does not tell */
};

#endif
