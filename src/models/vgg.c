/* VGG (Simonyan and Zisserman, "Very deep convolutional networks", 2015), as torchvision builds it: stages of 3x3
   convolutions with a max-pool behind each, three linear layers. */
#include "models/blocks.h"

enum { STAGES = 5 };

static cvy_value build(struct cvy_graph *g, cvy_value x, int64_t num_classes, const int n_convs[STAGES],
                       bool has_norm) {
    const int64_t channels[STAGES] = {64, 128, 256, 512, 512};
    const struct cvy_init normal = {CVY_INIT_NORMAL, 0.01};
    int at = 0; /* number of the layer in `features` */
    for (int stage = 0; stage < STAGES; stage++) {
        const struct cvy_init init = cvy_init_fan_out(channels[stage], 3);
        for (int k = 0; k < n_convs[stage]; k++, at += has_norm ? 3 : 2) {
            const cvy_conv2d_args args = {.name = cvy_layer_name(g, "features.%d", at),
                                          .out_channels = channels[stage],
                                          .kernel = 3,
                                          .padding = 1};
            x = cvy_conv2d_init(g, x, &args, &init, &cvy_init_zero);
            if (has_norm)
                x = cvy_batch_norm(g, x,
                                   &(cvy_batch_norm_args){.name = cvy_layer_name(g, "features.%d", at + 1)});
            x = cvy_relu(g, x);
        }
        x = cvy_max_pool(g, x, &(cvy_pool_args){.kernel = 2});
        at++;
    }
    x = cvy_flatten(g, cvy_adaptive_avg_pool(g, x, 7, 7));
    for (int k = 0; k < 3; k++) {
        const cvy_linear_args args = {.name = cvy_layer_name(g, "classifier.%d", 3 * k),
                                      .out_features = k < 2 ? 4096 : num_classes};
        x = cvy_linear_init(g, x, &args, &normal, &cvy_init_zero);
        if (k < 2)
            x = cvy_dropout(g, cvy_relu(g, x), 0.5);
    }
    return x;
}

#define VGG_MODEL(id, has_norm, help, ...)                                                    \
    static cvy_value build_##id(struct cvy_graph *g, cvy_value images, int64_t num_classes) { \
        return build(g, images, num_classes, (const int[STAGES]){__VA_ARGS__}, has_norm);     \
    }                                                                                         \
    CVY_IMAGENET_MODEL(id, help, 32, build_##id)
#define VGG_MODELS(layers, ...)                                                                  \
    VGG_MODEL(vgg##layers, false, "VGG-" #layers " (Simonyan 2015), torchvision's", __VA_ARGS__) \
    VGG_MODEL(vgg##layers##_bn, true, "VGG-" #layers " with batch norm, torchvision's", __VA_ARGS__)
VGG_MODELS(11, 1, 1, 2, 2, 2)
VGG_MODELS(13, 2, 2, 2, 2, 2)
VGG_MODELS(16, 2, 2, 3, 3, 3)
VGG_MODELS(19, 2, 2, 4, 4, 4)
