/* EfficientNet-B0 (Tan and Le 2019), as torchvision builds it. */
#include "models/blocks.h"

#include <math.h>

static cvy_value build(struct cvy_graph *g, cvy_value x, int64_t num_classes) {
    const struct {
        int64_t expansion, kernel, stride, channels, blocks;
    } stages[] = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                  {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};
    enum { N_BLOCKS = 16 };
    const struct cvy_init uniform = {CVY_INIT_UNIFORM, 1 / sqrt((double)num_classes)};
    struct cvy_conv_norm conv = {.channels = 32, .kernel = 3, .stride = 2, .activation = "silu"};
    int n_before = 0;
    x = cvy_conv_norm_at(g, x, "features.0", &conv);
    for (int s = 0; s < 7; s++) {
        for (int b = 0; b < stages[s].blocks; b++, n_before++) {
            const int64_t channels = cvy_channels_of(g, x);
            const struct cvy_inverted block = {
                .expanded = stages[s].expansion * channels,
                .channels = stages[s].channels,
                .kernel = stages[s].kernel,
                .stride = b == 0 ? stages[s].stride : 1,
                .activation = "silu",
                .squeeze = {.channels = channels / 4, .activation = "silu", .scale = "sigmoid"},
                .drop = 0.2 * n_before / N_BLOCKS};
            x = cvy_inverted_residual(g, x, cvy_layer_name(g, "features.%d.%d.block", s + 1, b), &block);
        }
    }
    conv.channels = 1280;
    conv.kernel = conv.stride = 1;
    x = cvy_conv_norm_at(g, x, "features.8", &conv);
    return cvy_linear_init(g, cvy_dropout(g, cvy_global_pool(g, x), 0.2),
                           &(cvy_linear_args){.name = "classifier.1", .out_features = num_classes}, &uniform,
                           &cvy_init_zero);
}

CVY_IMAGENET_MODEL(efficientnet_b0, "EfficientNet-B0 (Tan 2019), torchvision's", 1, build)
