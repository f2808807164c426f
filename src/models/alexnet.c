/* AlexNet in one column (Krizhevsky, "One weird trick", 2014), as torchvision builds it. */
#include "models/blocks.h"

static cvy_value build(struct cvy_graph *g, cvy_value x, int64_t num_classes) {
    const cvy_conv2d_args convs[] = {
        {.name = "features.0", .out_channels = 64, .kernel = 11, .stride = 4, .padding = 2},
        {.name = "features.3", .out_channels = 192, .kernel = 5, .padding = 2},
        {.name = "features.6", .out_channels = 384, .kernel = 3, .padding = 1},
        {.name = "features.8", .out_channels = 256, .kernel = 3, .padding = 1},
        {.name = "features.10", .out_channels = 256, .kernel = 3, .padding = 1},
    };
    const cvy_linear_args linears[] = {
        {.name = "classifier.1", .out_features = 4096},
        {.name = "classifier.4", .out_features = 4096},
        {.name = "classifier.6", .out_features = num_classes},
    };
    for (int k = 0; k < 5; k++) {
        x = cvy_relu(g, cvy_conv2d(g, x, &convs[k]));
        if (k < 2 || k == 4)
            x = cvy_max_pool(g, x, &(cvy_pool_args){.kernel = 3, .stride = 2});
    }
    x = cvy_flatten(g, cvy_adaptive_avg_pool(g, x, 6, 6));
    for (int k = 0; k < 3; k++) {
        x = cvy_linear(g, k < 2 ? cvy_dropout(g, x, 0.5) : x, &linears[k]);
        x = k < 2 ? cvy_relu(g, x) : x;
    }
    return x;
}

CVY_IMAGENET_MODEL(alexnet, "AlexNet (Krizhevsky 2014), torchvision's", 63, build)
