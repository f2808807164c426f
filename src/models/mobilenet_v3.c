/* MobileNetV3 (Howard et al. 2019), large and small, as torchvision builds them. */
#include "models/blocks.h"

struct block {
    int64_t kernel, expanded, channels;
    bool has_squeeze, is_hard; /* hard: hardswish, else relu */
    int64_t stride;
};

static const double eps = 0.001, momentum = 0.01;

/* v to the nearest multiple of 8, but not below 0.9 v. */
static int64_t to_eighths(int64_t v) {
    int64_t rounded = v + 4 < 16 ? 8 : (v + 4) / 8 * 8;
    return 10 * rounded < 9 * v ? rounded + 8 : rounded;
}

static cvy_value linear(struct cvy_graph *g, cvy_value x, const char *name, int64_t out_features) {
    const struct cvy_init normal = {CVY_INIT_NORMAL, 0.01};
    return cvy_linear_init(g, x, &(cvy_linear_args){.name = name, .out_features = out_features}, &normal,
                           &cvy_init_zero);
}

static cvy_value build(struct cvy_graph *g, cvy_value x, int64_t num_classes, const struct block *blocks,
                       int n_blocks, int64_t hidden) {
    struct cvy_conv_norm conv = {.channels = 16,
                                 .kernel = 3,
                                 .stride = 2,
                                 .eps = eps,
                                 .momentum = momentum,
                                 .activation = "hardswish"};
    x = cvy_conv_norm_at(g, x, "features.0", &conv);
    for (int k = 0; k < n_blocks; k++) {
        const struct block *b = &blocks[k];
        const struct cvy_inverted block = {
            .expanded = b->expanded,
            .channels = b->channels,
            .kernel = b->kernel,
            .stride = b->stride,
            .activation = b->is_hard ? "hardswish" : "relu",
            .squeeze = {.channels = b->has_squeeze ? to_eighths(b->expanded / 4) : 0,
                        .activation = "relu",
                        .scale = "hardsigmoid"},
            .eps = eps,
            .momentum = momentum};
        x = cvy_inverted_residual(g, x, cvy_layer_name(g, "features.%d.block", k + 1), &block);
    }
    conv.channels = 6 * cvy_channels_of(g, x);
    conv.kernel = conv.stride = 1;
    x = cvy_conv_norm_at(g, x, cvy_layer_name(g, "features.%d", n_blocks + 1), &conv);
    x = cvy_activate(g, linear(g, cvy_global_pool(g, x), "classifier.0", hidden), "hardswish");
    return linear(g, cvy_dropout(g, x, 0.2), "classifier.3", num_classes);
}

static cvy_value build_large(struct cvy_graph *g, cvy_value images, int64_t num_classes) {
    const struct block blocks[] = {
        {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
        {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
        {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
        {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
        {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1}};
    return build(g, images, num_classes, blocks, sizeof blocks / sizeof *blocks, 1280);
}

static cvy_value build_small(struct cvy_graph *g, cvy_value images, int64_t num_classes) {
    const struct block blocks[] = {
        {3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
        {5, 96, 40, true, true, 2},  {5, 240, 40, true, true, 1},  {5, 240, 40, true, true, 1},
        {5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},  {5, 288, 96, true, true, 2},
        {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1}};
    return build(g, images, num_classes, blocks, sizeof blocks / sizeof *blocks, 1024);
}

CVY_IMAGENET_MODEL(mobilenet_v3_large, "MobileNetV3-Large (Howard 2019), torchvision's", 1, build_large)
CVY_IMAGENET_MODEL(mobilenet_v3_small, "MobileNetV3-Small (Howard 2019), torchvision's", 1, build_small)
