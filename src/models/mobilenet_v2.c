/* MobileNetV2 (Sandler et al. 2018), as torchvision builds it. */
#include "models/blocks.h"

static cvy_value build(struct cvy_graph *g, cvy_value x, int64_t num_classes) {
    const struct {
        int64_t expansion, channels, blocks, stride;
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    const struct cvy_init normal = {CVY_INIT_NORMAL, 0.01};
    int number = 1; /* in `features` */
    x = cvy_conv_norm_at(
        g, x, "features.0",
        &(struct cvy_conv_norm){.channels = 32, .kernel = 3, .stride = 2, .activation = "relu6"});
    for (size_t s = 0; s < sizeof stages / sizeof *stages; s++) {
        for (int64_t b = 0; b < stages[s].blocks; b++, number++) {
            const struct cvy_inverted block = {.expanded = stages[s].expansion * cvy_channels_of(g, x),
                                               .channels = stages[s].channels,
                                               .kernel = 3,
                                               .stride = b == 0 ? stages[s].stride : 1,
                                               .activation = "relu6",
                                               .is_plain = true};
            x = cvy_inverted_residual(g, x, cvy_layer_name(g, "features.%d.conv", number), &block);
        }
    }
    x = cvy_conv_norm_at(g, x, "features.18",
                         &(struct cvy_conv_norm){.channels = 1280, .kernel = 1, .activation = "relu6"});
    return cvy_linear_init(g, cvy_dropout(g, cvy_global_pool(g, x), 0.2),
                           &(cvy_linear_args){.name = "classifier.1", .out_features = num_classes}, &normal,
                           &cvy_init_zero);
}

CVY_IMAGENET_MODEL(mobilenet_v2, "MobileNetV2 (Sandler 2018), torchvision's", 1, build)
