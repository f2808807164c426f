/* The numbers behind the rule. Measured on 2 AVX-512 cores with oneDNN 2.6, time an image, Winograd over direct:
   the transformed weights (C_in x C_out x 36 floats) are read once a call, so the gain grows with the number of
   tiles in the call, batch x ceil(H/4) x ceil(W/4). 512 channels at 4x4, forward: 1.25 with 16 tiles, 0.41 with
   128. Few channels (the stem, 16 to 32) leave the transforms too little to save on. */
#include "backends/cpu/conv_rule.h"

#include <string.h>

enum { TILE = 4, MIN_CHANNELS = 64, MIN_TILES = 64 };

static bool can_winograd(const struct cvy_conv2d_attrs *a) {
    for (int axis = 0; axis < 2; axis++) {
        if (a->kernel[axis] != 3 || a->stride[axis] != 1 || a->dilation[axis] != 1)
            return false;
    }
    return a->groups == 1;
}

bool cpu_conv_rule(const char *conv_algo, enum cpu_conv_pass pass, const struct cvy_conv2d_attrs *attrs,
                   const struct cpu_conv_shape *shape) {
    (void)pass;
    if (!can_winograd(attrs) || (conv_algo && strcmp(conv_algo, "direct") == 0))
        return false;
    if (conv_algo && strcmp(conv_algo, "winograd") == 0)
        return true;
    int64_t tiles =
        shape->batch * ((shape->out_height + TILE - 1) / TILE) * ((shape->out_width + TILE - 1) / TILE);
    return shape->in_channels >= MIN_CHANNELS && shape->out_channels >= MIN_CHANNELS && tiles >= MIN_TILES;
}
