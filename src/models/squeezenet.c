/* SqueezeNet 1.1 (Iandola et al. 2016), as torchvision builds it: fire modules, a 1x1 convolution squeezes, a 1x1 and a
   3x3 beside each other expand. */
#include "models/blocks.h"

#include <math.h>

/* kaiming_uniform_, and a bias of 0 */
static cvy_value conv_relu(struct cvy_graph *g, cvy_value x, const cvy_conv2d_args *args) {
    double fan_in = (double)(cvy_channels_of(g, x) * args->kernel * args->kernel);
    const struct cvy_init init = {CVY_INIT_UNIFORM, sqrt(6 / (fan_in > 0 ? fan_in : 1))};
    return cvy_relu(g, cvy_conv2d_init(g, x, args, &init, &cvy_init_zero));
}

static cvy_value fire(struct cvy_graph *g, cvy_value x, int number, int64_t squeezed, int64_t expanded) {
    const char *name = cvy_layer_name(g, "features.%d", number);
    x = conv_relu(g, x,
                  &(cvy_conv2d_args){
                      .name = cvy_layer_name(g, "%s.squeeze", name), .out_channels = squeezed, .kernel = 1});
    cvy_value parts[2];
    for (int k = 0; k < 2; k++) {
        const int size = k ? 3 : 1;
        parts[k] = conv_relu(g, x,
                             &(cvy_conv2d_args){.name = cvy_layer_name(g, "%s.expand%dx%d", name, size, size),
                                                .out_channels = expanded,
                                                .kernel = size,
                                                .padding = size / 2});
    }
    return cvy_apply(g, "concat", name, parts, 2, NULL);
}

static cvy_value build(struct cvy_graph *g, cvy_value x, int64_t num_classes) {
    const struct {
        int number, squeezed, expanded;
    } fires[] = {{3, 16, 64},  {4, 16, 64},   {6, 32, 128},  {7, 32, 128},
                 {9, 48, 192}, {10, 48, 192}, {11, 64, 256}, {12, 64, 256}};
    const cvy_pool_args pool = {.kernel = 3, .stride = 2, .ceil_mode = true};
    const struct cvy_init normal = {CVY_INIT_NORMAL, 0.01};
    x = conv_relu(g, x,
                  &(cvy_conv2d_args){.name = "features.0", .out_channels = 64, .kernel = 3, .stride = 2});
    for (int k = 0; k < 8; k++) {
        if (k % 2 == 0 && k < 6)
            x = cvy_max_pool(g, x, &pool);
        x = fire(g, x, fires[k].number, fires[k].squeezed, fires[k].expanded);
    }
    x = cvy_conv2d_init(g, cvy_dropout(g, x, 0.5),
                        &(cvy_conv2d_args){.name = "classifier.1", .out_channels = num_classes, .kernel = 1},
                        &normal, &cvy_init_zero);
    return cvy_global_pool(g, cvy_relu(g, x));
}

CVY_IMAGENET_MODEL(squeezenet1_1, "SqueezeNet 1.1 (Iandola 2016), torchvision's", 25, build)
