/* LeNet-5 (LeCun et al., "Gradient-based learning applied to document recognition", 1998) as it is built today:
   ReLU and max-pooling, padded convolutions, so that images of any size from 4 work. */
#include "models/models.h"

static cvy_value conv_pool(struct cvy_graph *g, cvy_value x, const char *name, int64_t out_channels) {
    x = cvy_conv2d(g, x,
                   &(cvy_conv2d_args){.name = name, .out_channels = out_channels, .kernel = 5, .padding = 2});
    return cvy_max_pool(g, cvy_relu(g, x), &(cvy_pool_args){.kernel = 2});
}

static cvy_value linear(struct cvy_graph *g, cvy_value x, const char *name, int64_t out_features) {
    return cvy_linear(g, x, &(cvy_linear_args){.name = name, .out_features = out_features});
}

static cvy_value build(struct cvy_graph *g, cvy_value images, int64_t num_classes) {
    cvy_value x = conv_pool(g, images, "conv1", 6);
    x = cvy_flatten(g, conv_pool(g, x, "conv2", 16)); /* N, 16 (H/4) (W/4) */
    x = cvy_relu(g, linear(g, x, "fc1", 120));
    x = cvy_relu(g, linear(g, x, "fc2", 84));
    return linear(g, x, "fc3", num_classes);
}

const struct cvy_model cvy_model_lenet5 = {
    .name = "lenet5",
    .help = "LeNet-5 (LeCun 1998) with ReLU and max-pooling",
    .channels = 1,
    .height = 28,
    .width = 28,
    .min_size = 4,
    .num_classes = 10,
    .is_classifier = true,
    .build = build,
};
