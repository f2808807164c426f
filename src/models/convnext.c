/* ConvNeXt-T (Liu et al. 2022), as torchvision builds it. There the linear layers of a block see channels last; here
   they are pointwise convolutions, whose weights have the same shapes. torchvision draws weights from a normal
   distribution of deviation 0.02 that is cut off at -2 and 2: a hundred deviations, so it is the normal one. */
#include "models/blocks.h"

static const struct cvy_init normal = {CVY_INIT_NORMAL, 0.02}, small = {CVY_INIT_CONSTANT, 1e-6};
enum { N_STAGES = 4, N_BLOCKS = 18 };

static cvy_value layer_norm(struct cvy_graph *g, cvy_value x, const char *name) {
    return cvy_layer_norm(g, x, &(cvy_layer_norm_args){.name = name, .eps = 1e-6});
}

/* A convolution of whole patches: kernel and stride are one number. */
static cvy_value patches(struct cvy_graph *g, cvy_value x, const char *name, int64_t channels, int64_t side) {
    const cvy_conv2d_args args = {.name = name, .out_channels = channels, .kernel = side, .stride = side};
    return cvy_conv2d_init(g, x, &args, &normal, &cvy_init_zero);
}

static cvy_value pointwise(struct cvy_graph *g, cvy_value x, const char *name, int64_t channels) {
    const struct cvy_shape matrix = CVY_SHAPE(channels, cvy_channels_of(g, x));
    const cvy_value in[] = {x, cvy_layer_parameter(g, name, "weight", matrix, normal),
                            cvy_layer_parameter(g, name, "bias", CVY_SHAPE(channels), cvy_init_zero)};
    return cvy_apply(g, "conv2d", name, in, 3, "pointwise=true");
}

/* x + layer_scale (depthwise 7x7, norm, four times the channels, gelu, and back), which stochastic depth leaves out
   with probability `drop`. */
static cvy_value block(struct cvy_graph *g, cvy_value x, const char *name, double drop) {
    const int64_t channels = cvy_channels_of(g, x);
    const cvy_value scale = cvy_layer_parameter(g, name, "layer_scale", CVY_SHAPE(channels, 1, 1), small);
    const cvy_conv2d_args depthwise = {.name = cvy_layer_name(g, "%s.block.0", name),
                                       .out_channels = channels,
                                       .kernel = 7,
                                       .padding = 3,
                                       .groups = channels};
    cvy_value y = cvy_conv2d_init(g, x, &depthwise, &normal, &cvy_init_zero);
    y = layer_norm(g, y, cvy_layer_name(g, "%s.block.2", name));
    y = pointwise(g, y, cvy_layer_name(g, "%s.block.3", name), 4 * channels);
    y = cvy_activate(g, y, "gelu");
    y = pointwise(g, y, cvy_layer_name(g, "%s.block.5", name), channels);
    y = cvy_apply(g, "mul", cvy_layer_name(g, "%s.mul", name), (cvy_value[]){y, scale}, 2, NULL);
    return cvy_add(g, cvy_stochastic_depth(g, y, drop), x);
}

static cvy_value build(struct cvy_graph *g, cvy_value x, int64_t num_classes) {
    const int64_t channels[N_STAGES] = {96, 192, 384, 768}, blocks[N_STAGES] = {3, 3, 9, 3};
    int n_before = 0;
    x = patches(g, x, "features.0.0", channels[0], 4);
    x = layer_norm(g, x, "features.0.1");
    for (int s = 0; s < N_STAGES; s++) {
        if (s > 0) {
            x = layer_norm(g, x, cvy_layer_name(g, "features.%d.0", 2 * s));
            x = patches(g, x, cvy_layer_name(g, "features.%d.1", 2 * s), channels[s], 2);
        }
        for (int b = 0; b < blocks[s]; b++, n_before++)
            x = block(g, x, cvy_layer_name(g, "features.%d.%d", 2 * s + 1, b),
                      0.1 * n_before / (N_BLOCKS - 1));
    }
    x = layer_norm(g, cvy_adaptive_avg_pool(g, x, 1, 1), "classifier.0");
    return cvy_linear_init(g, cvy_flatten(g, x),
                           &(cvy_linear_args){.name = "classifier.2", .out_features = num_classes}, &normal,
                           &cvy_init_zero);
}

CVY_IMAGENET_MODEL(convnext_tiny, "ConvNeXt-T (Liu 2022), torchvision's", 32, build)
