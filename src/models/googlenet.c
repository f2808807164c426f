/* GoogLeNet with batch norm (Szegedy et al. 2015; Ioffe and Szegedy 2015) as torchvision builds it: the branch called
   5x5 has a 3x3 convolution there too. Two auxiliary heads look at the middle of it in training; evaluation leaves
   them out. */
#include "models/blocks.h"

static const struct cvy_init normal = {CVY_INIT_NORMAL, 0.01};

static cvy_value conv(struct cvy_graph *g, cvy_value x, const char *name, int64_t channels, int64_t kernel) {
    const cvy_conv2d_args args = {.name = cvy_layer_name(g, "%s.conv", name),
                                  .out_channels = channels,
                                  .kernel = kernel,
                                  .stride = kernel == 7 ? 2 : 1,
                                  .padding = kernel / 2,
                                  .no_bias = true};
    x = cvy_conv2d_init(g, x, &args, &normal, NULL);
    x = cvy_batch_norm(g, x, &(cvy_batch_norm_args){.name = cvy_layer_name(g, "%s.bn", name), .eps = 0.001});
    return cvy_relu(g, x);
}

/* Channels: of the 1x1; before and of the 3x3; before and of the "5x5"; behind the max-pool. */
static cvy_value inception(struct cvy_graph *g, cvy_value x, const char *name, const int64_t channels[6]) {
    cvy_value parts[4] = {conv(g, x, cvy_layer_name(g, "%s.branch1", name), channels[0], 1)};
    for (int k = 1; k < 3; k++) {
        parts[k] = conv(g, x, cvy_layer_name(g, "%s.branch%d.0", name, k + 1), channels[2 * k - 1], 1);
        parts[k] = conv(g, parts[k], cvy_layer_name(g, "%s.branch%d.1", name, k + 1), channels[2 * k], 3);
    }
    parts[3] =
        cvy_max_pool(g, x, &(cvy_pool_args){.kernel = 3, .stride = 1, .padding = 1, .ceil_mode = true});
    parts[3] = conv(g, parts[3], cvy_layer_name(g, "%s.branch4.1", name), channels[5], 1);
    return cvy_apply(g, "concat", name, parts, 4, NULL);
}

/* 4x4 means of x, whatever its size; a 1x1 convolution and two layers. */
static void auxiliary(struct cvy_graph *g, cvy_value x, const char *name, int64_t num_classes) {
    const size_t first = g->values.n;
    x = cvy_flatten(g,
                    conv(g, cvy_adaptive_avg_pool(g, x, 4, 4), cvy_layer_name(g, "%s.conv", name), 128, 1));
    x = cvy_linear_init(g, x,
                        &(cvy_linear_args){.name = cvy_layer_name(g, "%s.fc1", name), .out_features = 1024},
                        &normal, NULL);
    x = cvy_dropout(g, cvy_relu(g, x), 0.7);
    x = cvy_linear_init(
        g, x, &(cvy_linear_args){.name = cvy_layer_name(g, "%s.fc2", name), .out_features = num_classes},
        &normal, NULL);
    cvy_auxiliary_head(g, first, x, 0.3);
}

static cvy_value build(struct cvy_graph *g, cvy_value x, int64_t num_classes) {
    const struct {
        const char *name;
        int64_t channels[6];
        int64_t pool; /* of the max-pool before it; 0: none */
    } blocks[] = {
        {"inception3a", {64, 96, 128, 16, 32, 32}, 3},     {"inception3b", {128, 128, 192, 32, 96, 64}, 0},
        {"inception4a", {192, 96, 208, 16, 48, 64}, 3},    {"inception4b", {160, 112, 224, 24, 64, 64}, 0},
        {"inception4c", {128, 128, 256, 24, 64, 64}, 0},   {"inception4d", {112, 144, 288, 32, 64, 64}, 0},
        {"inception4e", {256, 160, 320, 32, 128, 128}, 0}, {"inception5a", {256, 160, 320, 32, 128, 128}, 2},
        {"inception5b", {384, 192, 384, 48, 128, 128}, 0}};
    enum { AUX1 = 2, AUX2 = 5 }; /* the blocks that the heads look at: 4a, 4d */
    cvy_value seen[2] = {CVY_NONE, CVY_NONE};
    const cvy_pool_args pool = {.kernel = 3, .stride = 2, .ceil_mode = true};
    x = cvy_max_pool(g, conv(g, x, "conv1", 64, 7), &pool);
    x = conv(g, conv(g, x, "conv2", 64, 1), "conv3", 192, 3);
    for (int k = 0; k < 9; k++) {
        if (blocks[k].pool)
            x = cvy_max_pool(g, x,
                             &(cvy_pool_args){.kernel = blocks[k].pool, .stride = 2, .ceil_mode = true});
        x = inception(g, x, blocks[k].name, blocks[k].channels);
        if (k == AUX1 || k == AUX2)
            seen[k == AUX2] = x;
    }
    auxiliary(g, seen[0], "aux1", num_classes); /* behind the rest, as in torchvision's state_dict */
    auxiliary(g, seen[1], "aux2", num_classes);
    return cvy_linear_init(g, cvy_dropout(g, cvy_global_pool(g, x), 0.2),
                           &(cvy_linear_args){.name = "fc", .out_features = num_classes}, &normal, NULL);
}

CVY_IMAGENET_MODEL(googlenet, "GoogLeNet (Szegedy 2015), with auxiliary heads in training", 31, build)
