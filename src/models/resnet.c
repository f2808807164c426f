/* ResNets for ImageNet, as torchvision builds them ("v1.5": a bottleneck's stride is on its 3x3 convolution), and
   the builder that the CIFAR variants share. Parameters are declared in the order of torchvision's state_dict. */
#include "models/resnet.h"
#include "models/blocks.h"

enum { EXPANSION = 4, BASE_WIDTH = 64 }; /* of a bottleneck: how much wider its last convolution is */

static cvy_value relu(struct cvy_graph *g, cvy_value x, const char *name) {
    return cvy_apply(g, "relu", name, &x, 1, NULL);
}

/* y = relu(f(x) + x): f is a chain of convolutions; where it changes the shape, x takes a 1x1 convolution. */
static cvy_value block(struct cvy_graph *g, cvy_value x, const char *name, const struct cvy_resnet *net,
                       int64_t width, int64_t stride) {
    int64_t groups = net->groups ? net->groups : 1;
    int64_t middle = width * (net->group_width ? net->group_width : BASE_WIDTH) / BASE_WIDTH * groups;
    const struct cvy_conv_norm basic[] = {{.channels = width, .kernel = 3, .stride = stride},
                                          {.channels = width, .kernel = 3}};
    const struct cvy_conv_norm bottleneck[] = {
        {.channels = middle, .kernel = 1},
        {.channels = middle, .kernel = 3, .stride = stride, .groups = groups},
        {.channels = width * EXPANSION, .kernel = 1}};
    const struct cvy_conv_norm *f = net->is_bottleneck ? bottleneck : basic;
    int n = net->is_bottleneck ? 3 : 2;

    cvy_value y = x;
    for (int i = 1; i <= n; i++) {
        struct cvy_conv_norm conv = f[i - 1];
        conv.conv = cvy_layer_name(g, "%s.conv%d", name, i);
        conv.norm = cvy_layer_name(g, "%s.bn%d", name, i);
        y = cvy_conv_norm(g, y, &conv);
        if (i < n)
            y = relu(g, y, cvy_layer_name(g, "%s.relu%d", name, i));
    }
    if (y == CVY_NONE)
        return CVY_NONE;
    if (stride != 1 || cvy_channels_of(g, x) != f[n - 1].channels)
        x = cvy_conv_norm_at(
            g, x, cvy_layer_name(g, "%s.downsample", name),
            &(struct cvy_conv_norm){.channels = f[n - 1].channels, .kernel = 1, .stride = stride});
    y = cvy_apply(g, "add", cvy_layer_name(g, "%s.add", name), (cvy_value[]){y, x}, 2, NULL);
    return relu(g, y, cvy_layer_name(g, "%s.relu%d", name, n));
}

cvy_value cvy_resnet_build(struct cvy_graph *g, cvy_value images, int64_t num_classes,
                           const struct cvy_resnet *shape) {
    const struct cvy_conv_norm stem = {.conv = "conv1",
                                       .norm = "bn1",
                                       .channels = shape->width,
                                       .kernel = shape->is_small ? 3 : 7,
                                       .stride = shape->is_small ? 1 : 2};
    cvy_value x = relu(g, cvy_conv_norm(g, images, &stem), "relu");
    if (!shape->is_small)
        x = cvy_max_pool(g, x, &(cvy_pool_args){.name = "maxpool", .kernel = 3, .stride = 2, .padding = 1});

    for (int stage = 0; stage < shape->n_stages; stage++) {
        for (int i = 0; i < shape->n_blocks[stage]; i++)
            x = block(g, x, cvy_layer_name(g, "layer%d.%d", stage + 1, i), shape, shape->width << stage,
                      stage > 0 && i == 0 ? 2 : 1);
    }
    x = cvy_flatten(g, cvy_adaptive_avg_pool(g, x, 1, 1));
    return cvy_linear(g, x, &(cvy_linear_args){.name = "fc", .out_features = num_classes});
}

#define RESNET(id, help, ...)                                                                 \
    static cvy_value build_##id(struct cvy_graph *g, cvy_value images, int64_t num_classes) { \
        const struct cvy_resnet shape = {.width = BASE_WIDTH, .n_stages = 4, __VA_ARGS__};    \
        return cvy_resnet_build(g, images, num_classes, &shape);                              \
    }                                                                                         \
    CVY_IMAGENET_MODEL(id, help, 1, build_##id)
RESNET(resnet18, "ResNet-18 for ImageNet (He et al. 2016), torchvision's", .n_blocks = {2, 2, 2, 2})
RESNET(resnet34, "ResNet-34 for ImageNet (He et al. 2016), torchvision's", .n_blocks = {3, 4, 6, 3})
RESNET(resnet50, "ResNet-50 for ImageNet (He et al. 2016), torchvision's (v1.5)", .is_bottleneck = true,
       .n_blocks = {3, 4, 6, 3})
RESNET(resnet101, "ResNet-101 for ImageNet (He et al. 2016), torchvision's (v1.5)", .is_bottleneck = true,
       .n_blocks = {3, 4, 23, 3})
RESNET(resnet152, "ResNet-152 for ImageNet (He et al. 2016), torchvision's (v1.5)", .is_bottleneck = true,
       .n_blocks = {3, 8, 36, 3})
RESNET(resnext50_32x4d, "ResNeXt-50 of 32 groups of 4 (Xie 2017), torchvision's", .is_bottleneck = true,
       .n_blocks = {3, 4, 6, 3}, .groups = 32, .group_width = 4)
RESNET(wide_resnet50_2, "ResNet-50, its 3x3 twice as wide (Zagoruyko 2016), torchvision's",
       .is_bottleneck = true, .n_blocks = {3, 4, 6, 3}, .group_width = 128)
