/* WRN-28-10 for small images (Zagoruyko and Komodakis, "Wide residual networks", 2016): three stages of four blocks,
   batch norm and relu before each 3x3 convolution. A block that changes the shape gives relu(bn1(x)) to its shortcut
   too. Names as ResNet has them. */
#include "models/blocks.h"

enum { STAGES = 3, BLOCKS = 4, WIDTH = 10 };

static cvy_value conv(struct cvy_graph *g, cvy_value x, const char *name, int64_t channels, int64_t kernel,
                      int64_t stride) {
    const struct cvy_init init = cvy_init_fan_out(channels, kernel);
    const cvy_conv2d_args args = {.name = name,
                                  .out_channels = channels,
                                  .kernel = kernel,
                                  .stride = stride,
                                  .padding = kernel / 2,
                                  .no_bias = true};
    return cvy_conv2d_init(g, x, &args, &init, NULL);
}

static cvy_value norm_relu(struct cvy_graph *g, cvy_value x, const char *name) {
    return cvy_relu(g, cvy_batch_norm(g, x, &(cvy_batch_norm_args){.name = name}));
}

static cvy_value block(struct cvy_graph *g, cvy_value x, const char *name, int64_t channels, int64_t stride) {
    cvy_value y = norm_relu(g, x, cvy_layer_name(g, "%s.bn1", name));
    if (stride != 1 || cvy_channels_of(g, x) != channels)
        x = conv(g, y, cvy_layer_name(g, "%s.downsample", name), channels, 1, stride);
    y = conv(g, y, cvy_layer_name(g, "%s.conv1", name), channels, 3, stride);
    y = norm_relu(g, y, cvy_layer_name(g, "%s.bn2", name));
    return cvy_add(g, conv(g, y, cvy_layer_name(g, "%s.conv2", name), channels, 3, 1), x);
}

static cvy_value build(struct cvy_graph *g, cvy_value x, int64_t num_classes) {
    x = conv(g, x, "conv1", 16, 3, 1);
    for (int stage = 0; stage < STAGES; stage++) {
        for (int k = 0; k < BLOCKS; k++)
            x = block(g, x, cvy_layer_name(g, "layer%d.%d", stage + 1, k), (int64_t)(16 * WIDTH) << stage,
                      stage > 0 && k == 0 ? 2 : 1);
    }
    x = cvy_global_pool(g, norm_relu(g, x, "bn1"));
    return cvy_linear(g, x, &(cvy_linear_args){.name = "fc", .out_features = num_classes});
}

const struct cvy_model cvy_model_wrn28_10 = {
    .name = "wrn28_10",
    .help = "WRN-28-10 for CIFAR (Zagoruyko 2016), without dropout",
    .channels = 3,
    .height = 32,
    .width = 32,
    .min_size = 1,
    .num_classes = 10,
    .is_classifier = true,
    .build = build,
};
