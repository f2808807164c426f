/* RegNetY-400MF (Radosavovic et al., "Designing network design spaces", 2020), as torchvision builds it. Its stages
   follow from depth 16, w_0 = 48, w_a = 27.89, w_m = 2.09 and groups of 8 channels. */
#include "models/blocks.h"

enum { STAGES = 4, GROUP_WIDTH = 8, STEM = 32 };

static cvy_value block(struct cvy_graph *g, cvy_value x, const char *name, int64_t width, int64_t stride) {
    const int64_t width_in = cvy_channels_of(g, x);
    struct cvy_conv_norm conv = {.channels = width, .kernel = 1, .activation = "relu"};
    const struct cvy_squeeze squeeze = {.channels = (width_in + 2) / 4, /* a quarter, rounded */
                                        .activation = "relu",
                                        .scale = "sigmoid",
                                        .torch_bias = true};
    cvy_value y = x;
    if (stride != 1 || width != width_in)
        x = cvy_conv_norm_at(g, x, cvy_layer_name(g, "%s.proj", name),
                             &(struct cvy_conv_norm){.channels = width, .kernel = 1, .stride = stride});
    y = cvy_conv_norm_at(g, y, cvy_layer_name(g, "%s.f.a", name), &conv);
    conv.kernel = 3;
    conv.stride = stride;
    conv.groups = width / GROUP_WIDTH;
    y = cvy_conv_norm_at(g, y, cvy_layer_name(g, "%s.f.b", name), &conv);
    y = cvy_squeeze_excitation(g, y, cvy_layer_name(g, "%s.f.se", name), &squeeze);
    y = cvy_conv_norm_at(g, y, cvy_layer_name(g, "%s.f.c", name),
                         &(struct cvy_conv_norm){.channels = width, .kernel = 1});
    return cvy_relu(g, cvy_add(g, y, x));
}

static cvy_value build(struct cvy_graph *g, cvy_value x, int64_t num_classes) {
    const int64_t widths[STAGES] = {48, 104, 208, 440}, depths[STAGES] = {1, 3, 6, 6};
    const struct cvy_init normal = {CVY_INIT_NORMAL, 0.01};
    x = cvy_conv_norm_at(
        g, x, "stem",
        &(struct cvy_conv_norm){.channels = STEM, .kernel = 3, .stride = 2, .activation = "relu"});
    for (int stage = 0; stage < STAGES; stage++) {
        for (int k = 0; k < depths[stage]; k++)
            x = block(g, x, cvy_layer_name(g, "trunk_output.block%d.block%d-%d", stage + 1, stage + 1, k),
                      widths[stage], k == 0 ? 2 : 1);
    }
    return cvy_linear_init(g, cvy_global_pool(g, x),
                           &(cvy_linear_args){.name = "fc", .out_features = num_classes}, &normal,
                           &cvy_init_zero);
}

CVY_IMAGENET_MODEL(regnet_y_400mf, "RegNetY-400MF (Radosavovic 2020), torchvision's", 1, build)
