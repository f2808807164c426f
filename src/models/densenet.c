/* DenseNet (Huang et al. 2017), as torchvision builds it: each layer sees all that the block made before. What they see
   grows by one concat for each layer. */
#include "models/blocks.h"

#include <math.h>

enum { STAGES = 4, GROWTH = 32, BOTTLENECK = 4 };

/* kaiming_normal_ (fan_in) */
static cvy_value conv(struct cvy_graph *g, cvy_value x, const char *name, int64_t channels, int64_t kernel) {
    double fan_in = (double)(cvy_channels_of(g, x) * kernel * kernel);
    const struct cvy_init init = {CVY_INIT_NORMAL, sqrt(2 / (fan_in > 0 ? fan_in : 1))};
    const cvy_conv2d_args args = {.name = name,
                                  .out_channels = channels,
                                  .kernel = kernel,
                                  .stride = kernel == 7 ? 2 : 1,
                                  .padding = kernel / 2,
                                  .no_bias = true};
    return cvy_conv2d_init(g, x, &args, &init, NULL);
}

static cvy_value norm_relu(struct cvy_graph *g, cvy_value x, const char *name) {
    return cvy_relu(g, cvy_batch_norm(g, x, &(cvy_batch_norm_args){.name = name}));
}

static cvy_value dense_layer(struct cvy_graph *g, cvy_value x, const char *name) {
    cvy_value y = norm_relu(g, x, cvy_layer_name(g, "%s.norm1", name));
    y = conv(g, y, cvy_layer_name(g, "%s.conv1", name), (int64_t)BOTTLENECK * GROWTH, 1);
    y = norm_relu(g, y, cvy_layer_name(g, "%s.norm2", name));
    y = conv(g, y, cvy_layer_name(g, "%s.conv2", name), GROWTH, 3);
    return cvy_apply(g, "concat", NULL, (cvy_value[]){x, y}, 2, NULL);
}

static cvy_value build(struct cvy_graph *g, cvy_value x, int64_t num_classes, const int n_layers[STAGES]) {
    x = norm_relu(g, conv(g, x, "features.conv0", (int64_t)2 * GROWTH, 7), "features.norm0");
    x = cvy_max_pool(g, x, &(cvy_pool_args){.kernel = 3, .stride = 2, .padding = 1});
    for (int stage = 1; stage <= STAGES; stage++) {
        for (int k = 1; k <= n_layers[stage - 1]; k++)
            x = dense_layer(g, x, cvy_layer_name(g, "features.denseblock%d.denselayer%d", stage, k));
        if (stage == STAGES)
            break;
        x = norm_relu(g, x, cvy_layer_name(g, "features.transition%d.norm", stage));
        x = conv(g, x, cvy_layer_name(g, "features.transition%d.conv", stage), cvy_channels_of(g, x) / 2, 1);
        x = cvy_avg_pool(g, x, &(cvy_pool_args){.kernel = 2});
    }
    x = cvy_global_pool(g, norm_relu(g, x, "features.norm5"));
    return cvy_linear_init(g, x, &(cvy_linear_args){.name = "classifier", .out_features = num_classes}, NULL,
                           &cvy_init_zero);
}

#define DENSENET_MODEL(layers, ...)                                                               \
    static cvy_value build_##layers(struct cvy_graph *g, cvy_value images, int64_t num_classes) { \
        return build(g, images, num_classes, (const int[STAGES]){__VA_ARGS__});                   \
    }                                                                                             \
    CVY_IMAGENET_MODEL(densenet##layers, "DenseNet-" #layers " (Huang 2017), torchvision's", 29,  \
                       build_##layers)
DENSENET_MODEL(121, 6, 12, 24, 16)
DENSENET_MODEL(169, 6, 12, 32, 32)
