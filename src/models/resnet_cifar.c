/* ResNets for small images: a 3x3 stem and no max-pool, so that images of 32x32 keep their detail. */
#include "models/resnet.h"

/* He et al., section 4.2, n = 3: three stages of 3 blocks; their shortcuts here are 1x1 convolutions (option B). */
static cvy_value build_resnet20(struct cvy_graph *g, cvy_value images, int64_t num_classes) {
    const struct cvy_resnet shape = {.is_small = true, .width = 16, .n_stages = 3, .n_blocks = {3, 3, 3}};
    return cvy_resnet_build(g, images, num_classes, &shape);
}

static cvy_value build_resnet18_cifar(struct cvy_graph *g, cvy_value images, int64_t num_classes) {
    const struct cvy_resnet shape = {.is_small = true, .width = 64, .n_stages = 4, .n_blocks = {2, 2, 2, 2}};
    return cvy_resnet_build(g, images, num_classes, &shape);
}

const struct cvy_model cvy_model_resnet20 = {
    .name = "resnet20",
    .help = "ResNet-20 for CIFAR (He et al. 2016), with 1x1 projection shortcuts",
    .channels = 3,
    .height = 32,
    .width = 32,
    .min_size = 1,
    .num_classes = 10,
    .is_classifier = true,
    .build = build_resnet20,
};

const struct cvy_model cvy_model_resnet18_cifar = {
    .name = "resnet18_cifar",
    .help = "ResNet-18 with a 3x3 stem of stride 1 and no max-pool, for images of about 32x32",
    .channels = 3,
    .height = 32,
    .width = 32,
    .min_size = 1,
    .num_classes = 10,
    .is_classifier = true,
    .build = build_resnet18_cifar,
};
