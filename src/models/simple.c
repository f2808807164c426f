/* The two-layer model of the examples: a convolution, then a linear layer over the rows of its result. It yields
   rows of numbers for each channel, not a score for each class. */
#include "models/models.h"

static cvy_value build(struct cvy_graph *g, cvy_value images, int64_t num_classes) {
    cvy_value x = cvy_conv2d(g, images, &(cvy_conv2d_args){.name = "conv", .out_channels = 1, .kernel = 3});
    return cvy_linear(g, x, &(cvy_linear_args){.name = "fc", .out_features = num_classes}); /* N,1,H-2,K */
}

const struct cvy_model cvy_model_simple = {
    .name = "simple",
    .help = "one convolution and one linear layer: for the examples, no classifier",
    .channels = 1,
    .height = 12,
    .width = 12,
    .min_size = 3,
    .num_classes = 10,
    .is_classifier = false,
    .build = build,
};
