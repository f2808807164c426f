/* ResNets for ImageNet, as torchvision builds them ("v1.5": a bottleneck's stride is on its 3x3 convolution), and
   the builder that the CIFAR variants share. Parameters are declared in the order of torchvision's state_dict. */
#include "models/resnet.h"
#include "models/layers.h"

#include <math.h>

enum { EXPANSION = 4 }; /* of a bottleneck: how much wider its last convolution is */

struct conv {
    int64_t channels, kernel, stride;
};

/* A convolution without bias, padded to keep the size (at stride 1), and its batch norm. Initial weights are
   kaiming_normal_(mode="fan_out", nonlinearity="relu"). */
static cvy_value conv_norm(struct cvy_graph *g, cvy_value x, const char *conv_name, const char *norm_name,
                           const struct conv *conv) {
    double fan_out = (double)(conv->channels * conv->kernel * conv->kernel);
    const struct cvy_init init = {CVY_INIT_NORMAL, sqrt(2 / fan_out)};
    const cvy_conv2d_args args = {.name = conv_name,
                                  .out_channels = conv->channels,
                                  .kernel = conv->kernel,
                                  .stride = conv->stride,
                                  .padding = conv->kernel / 2,
                                  .no_bias = true};
    x = cvy_conv2d_init(g, x, &args, &init);
    return cvy_batch_norm(g, x, &(cvy_batch_norm_args){.name = norm_name});
}

static cvy_value relu(struct cvy_graph *g, cvy_value x, const char *name) {
    return cvy_apply(g, "relu", name, &x, 1, NULL);
}

/* y = relu(f(x) + x): f is a chain of convolutions; where it changes the shape, x takes a 1x1 convolution. */
static cvy_value block(struct cvy_graph *g, cvy_value x, const char *name, bool is_bottleneck, int64_t width,
                       int64_t stride) {
    const struct conv basic[] = {{width, 3, stride}, {width, 3, 1}};
    const struct conv bottleneck[] = {{width, 1, 1}, {width, 3, stride}, {width * EXPANSION, 1, 1}};
    const struct conv *f = is_bottleneck ? bottleneck : basic;
    int n = is_bottleneck ? 3 : 2;

    cvy_value y = x;
    for (int i = 1; i <= n; i++) {
        y = conv_norm(g, y, cvy_layer_name(g, "%s.conv%d", name, i), cvy_layer_name(g, "%s.bn%d", name, i),
                      &f[i - 1]);
        if (i < n)
            y = relu(g, y, cvy_layer_name(g, "%s.relu%d", name, i));
    }
    if (y == CVY_NONE)
        return CVY_NONE;
    if (stride != 1 || cvy_graph_value(g, x)->desc.shape.dim[1] != f[n - 1].channels)
        x = conv_norm(g, x, cvy_layer_name(g, "%s.downsample.0", name),
                      cvy_layer_name(g, "%s.downsample.1", name),
                      &(struct conv){f[n - 1].channels, 1, stride});
    y = cvy_apply(g, "add", cvy_layer_name(g, "%s.add", name), (cvy_value[]){y, x}, 2, NULL);
    return relu(g, y, cvy_layer_name(g, "%s.relu%d", name, n));
}

cvy_value cvy_resnet_build(struct cvy_graph *g, cvy_value images, int64_t num_classes,
                           const struct cvy_resnet *shape) {
    const struct conv stem = {shape->width, shape->is_small ? 3 : 7, shape->is_small ? 1 : 2};
    cvy_value x = relu(g, conv_norm(g, images, "conv1", "bn1", &stem), "relu");
    if (!shape->is_small)
        x = cvy_max_pool(g, x, &(cvy_pool_args){.name = "maxpool", .kernel = 3, .stride = 2, .padding = 1});

    for (int stage = 0; stage < shape->n_stages; stage++) {
        for (int i = 0; i < shape->n_blocks[stage]; i++)
            x = block(g, x, cvy_layer_name(g, "layer%d.%d", stage + 1, i), shape->is_bottleneck,
                      shape->width << stage, stage > 0 && i == 0 ? 2 : 1);
    }
    x = cvy_flatten(g, cvy_adaptive_avg_pool(g, x, 1, 1));
    return cvy_linear(g, x, &(cvy_linear_args){.name = "fc", .out_features = num_classes});
}

static cvy_value build_resnet18(struct cvy_graph *g, cvy_value images, int64_t num_classes) {
    const struct cvy_resnet shape = {.width = 64, .n_stages = 4, .n_blocks = {2, 2, 2, 2}};
    return cvy_resnet_build(g, images, num_classes, &shape);
}

static cvy_value build_resnet50(struct cvy_graph *g, cvy_value images, int64_t num_classes) {
    const struct cvy_resnet shape = {
        .is_bottleneck = true, .width = 64, .n_stages = 4, .n_blocks = {3, 4, 6, 3}};
    return cvy_resnet_build(g, images, num_classes, &shape);
}

const struct cvy_model cvy_model_resnet18 = {
    .name = "resnet18",
    .help = "ResNet-18 for ImageNet (He et al. 2016), torchvision's",
    .channels = 3,
    .height = 224,
    .width = 224,
    .min_size = 1,
    .num_classes = 1000,
    .is_classifier = true,
    .build = build_resnet18,
};

const struct cvy_model cvy_model_resnet50 = {
    .name = "resnet50",
    .help = "ResNet-50 for ImageNet (He et al. 2016), torchvision's (v1.5)",
    .channels = 3,
    .height = 224,
    .width = 224,
    .min_size = 1,
    .num_classes = 1000,
    .is_classifier = true,
    .build = build_resnet50,
};
