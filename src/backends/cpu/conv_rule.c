/* The numbers behind the rule, measured on AVX-512 cores with oneDNN 2.6, one thread. Time of Winograd over direct by
   tiles in the call (batch x ceil(H/4) x ceil(W/4)), forward: 512 channels at 4x4: 1.25 to 1.7 with 16 tiles, 0.9 to
   1.0 with 32, 0.7 to 0.9 with 64, 0.4 to 0.6 with 128; 256 at 8x8: 0.9 to 1.0 with 32, 0.65 to 0.75 with 64; 128 at
   16x16: 1.05 with 32, 0.75 with 64. backward_data was much the same; backward_weights transforms no weights
   beforehand and wins earlier: 0.7 to 0.8 with 32. Fewer than 64 channels leave the transforms too little to save
   on. */
#include "backends/cpu/conv_rule.h"

#include "ops/conv_algo.h"

enum { TILE = 4, MIN_CHANNELS = 64, MIN_TILES = 64, MIN_TILES_WEIGHTS = 32 };

static int64_t count_tiles(const struct cpu_conv_shape *shape) {
    return shape->batch * ((shape->out_height + TILE - 1) / TILE) * ((shape->out_width + TILE - 1) / TILE);
}

/* A quarter of the products, and transforms: of the images for each tile, of the weights once for all tiles. */
double cpu_winograd_time(const struct cpu_conv_shape *shape) {
    return 0.38 + 14.0 / (double)count_tiles(shape);
}

/* What the text of --conv-algo says; both enums have the same order. */
static enum cvy_conv_algo told(const char *conv_algo, enum cpu_conv_pass pass,
                               const struct cpu_conv_shape *s) {
    return cvy_conv_algo_find(conv_algo,
                              &(struct cvy_conv_key){(enum cvy_conv_pass)pass, s->batch, s->in_channels,
                                                     s->out_channels, s->out_height, s->out_width});
}

bool cpu_conv_rule(const char *conv_algo, enum cpu_conv_pass pass, const struct cvy_conv2d_attrs *attrs,
                   const struct cpu_conv_shape *shape) {
    if (!cvy_conv_can_winograd(attrs))
        return false;
    enum cvy_conv_algo algo = told(conv_algo, pass, shape);
    if (algo != CVY_CONV_AUTO)
        return algo == CVY_CONV_WINOGRAD;
    int64_t tiles = count_tiles(shape);
    int64_t min_tiles = pass == CPU_CONV_BACKWARD_WEIGHTS ? MIN_TILES_WEIGHTS : MIN_TILES;
    return shape->in_channels >= MIN_CHANNELS && shape->out_channels >= MIN_CHANNELS && tiles >= min_tiles;
}
