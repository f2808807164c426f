/* The residual networks (He et al., "Deep residual learning for image recognition", 2016) with torchvision's
   names: conv1, bn1, layer1.0.conv1, …, layer1.0.downsample.0, …, fc. */
#ifndef CVY_MODELS_RESNET_H
#define CVY_MODELS_RESNET_H

#include "models/models.h"

struct cvy_resnet {
    bool is_small; /* for small images: 3x3 stem of stride 1, no max-pool; else 7x7 of stride 2, max-pool */
    bool is_bottleneck; /* blocks of 1x1, 3x3, 1x1 (4 times wider) convolutions; else of two 3x3 */
    int64_t width;      /* channels of the stem and the first stage; every stage doubles it */
    int n_stages;
    int n_blocks[4]; /* of each stage */
    int64_t groups,
        group_width; /* of a bottleneck's 3x3: how many, and channels of each in the first stage if those of
                                    a block were 64; 0: 1 and 64 */
};

/* Adds the network; the logits, N,num_classes. */
cvy_value cvy_resnet_build(struct cvy_graph *g, cvy_value images, int64_t num_classes,
                           const struct cvy_resnet *shape);

#endif
