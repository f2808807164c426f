/* ShuffleNetV2 at width 1.0 (Ma et al. 2018), as torchvision builds it: half of the channels pass a block as they are,
   and the halves are shuffled behind it. */
#include "models/blocks.h"

static cvy_value conv(struct cvy_graph *g, cvy_value x, const char *name, int number,
                      struct cvy_conv_norm what) {
    what.conv = cvy_layer_name(g, "%s.%d", name, number);
    what.norm = cvy_layer_name(g, "%s.%d", name, number + 1);
    what.torch_init = true;
    return cvy_conv_norm(g, x, &what);
}

static cvy_value half(struct cvy_graph *g, cvy_value x, int64_t channels, bool is_second) {
    return cvy_apply(g, "channel_slice", NULL, &x, 1,
                     cvy_layer_name(g, "first=%d count=%d", is_second ? (int)channels : 0, (int)channels));
}

static cvy_value block(struct cvy_graph *g, cvy_value x, const char *name, int64_t channels, int64_t stride) {
    const struct cvy_conv_norm point = {.channels = channels, .kernel = 1, .activation = "relu"};
    struct cvy_conv_norm depth = {.kernel = 3, .stride = stride};
    const char *branch = cvy_layer_name(g, "%s.branch1", name);
    cvy_value parts[2] = {x, x};
    if (x == CVY_NONE)
        return CVY_NONE;
    if (stride == 1) {
        parts[0] = half(g, x, channels, false);
        parts[1] = half(g, x, channels, true);
    } else {
        depth.channels = depth.groups = cvy_channels_of(g, x);
        parts[0] = conv(g, conv(g, x, branch, 0, depth), branch, 2, point);
    }
    branch = cvy_layer_name(g, "%s.branch2", name);
    depth.channels = depth.groups = channels;
    parts[1] = conv(g, parts[1], branch, 0, point);
    parts[1] = conv(g, conv(g, parts[1], branch, 3, depth), branch, 5, point);
    x = cvy_apply(g, "concat", NULL, parts, 2, NULL);
    return cvy_apply(g, "channel_shuffle", NULL, &x, 1, "groups=2");
}

static cvy_value build(struct cvy_graph *g, cvy_value x, int64_t num_classes) {
    const int64_t channels[] = {116, 232, 464}, blocks[] = {4, 8, 4};
    x = conv(g, x, "conv1", 0,
             (struct cvy_conv_norm){.channels = 24, .kernel = 3, .stride = 2, .activation = "relu"});
    x = cvy_max_pool(g, x, &(cvy_pool_args){.kernel = 3, .stride = 2, .padding = 1});
    for (int stage = 0; stage < 3; stage++) {
        for (int b = 0; b < blocks[stage]; b++)
            x = block(g, x, cvy_layer_name(g, "stage%d.%d", stage + 2, b), channels[stage] / 2,
                      b == 0 ? 2 : 1);
    }
    x = conv(g, x, "conv5", 0, (struct cvy_conv_norm){.channels = 1024, .kernel = 1, .activation = "relu"});
    return cvy_linear(g, cvy_global_pool(g, x),
                      &(cvy_linear_args){.name = "fc", .out_features = num_classes});
}

CVY_IMAGENET_MODEL(shufflenet_v2_x1_0, "ShuffleNetV2 at width 1.0 (Ma 2018), torchvision's", 1, build)
