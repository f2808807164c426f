/* ResNets for small images: a 3x3 stem and no max-pool, so that images of 32x32 keep their detail. */
#include "models/resnet.h"

/* He et al., section 4.2: three stages of n blocks; their shortcuts here are 1x1 convolutions (option B). */
static cvy_value build_thin(struct cvy_graph *g, cvy_value images, int64_t num_classes, int n) {
    const struct cvy_resnet shape = {.is_small = true, .width = 16, .n_stages = 3, .n_blocks = {n, n, n}};
    return cvy_resnet_build(g, images, num_classes, &shape);
}

static cvy_value build_resnet20(struct cvy_graph *g, cvy_value images, int64_t num_classes) {
    return build_thin(g, images, num_classes, 3);
}

static cvy_value build_resnet32(struct cvy_graph *g, cvy_value images, int64_t num_classes) {
    return build_thin(g, images, num_classes, 5);
}

static cvy_value build_resnet56(struct cvy_graph *g, cvy_value images, int64_t num_classes) {
    return build_thin(g, images, num_classes, 9);
}

static cvy_value build_resnet18_cifar(struct cvy_graph *g, cvy_value images, int64_t num_classes) {
    const struct cvy_resnet shape = {.is_small = true, .width = 64, .n_stages = 4, .n_blocks = {2, 2, 2, 2}};
    return cvy_resnet_build(g, images, num_classes, &shape);
}

#define SMALL_MODEL(ID, HELP)                 \
    const struct cvy_model cvy_model_##ID = { \
        .name = #ID,                          \
        .help = HELP,                         \
        .channels = 3,                        \
        .height = 32,                         \
        .width = 32,                          \
        .min_size = 1,                        \
        .num_classes = 10,                    \
        .is_classifier = true,                \
        .build = build_##ID,                  \
    };

SMALL_MODEL(resnet20, "ResNet-20 for CIFAR (He et al. 2016), with 1x1 projection shortcuts")
SMALL_MODEL(resnet32, "ResNet-32 for CIFAR, likewise")
SMALL_MODEL(resnet56, "ResNet-56 for CIFAR, likewise")
SMALL_MODEL(resnet18_cifar,
            "ResNet-18 with a 3x3 stem of stride 1 and no max-pool, for images of about 32x32")
