/* Blocks that several of torchvision's models are made of. */
#ifndef CVY_MODELS_BLOCKS_H
#define CVY_MODELS_BLOCKS_H

#include "models/layers.h"
#include "models/models.h"

/* A model for images of 224x224 and ImageNet's classes: what `cvy_model_ID` has in common. */
#define CVY_IMAGENET_MODEL(id, help_text, min, build_function)      \
    const struct cvy_model cvy_model_##id = {.name = #id,           \
                                             .help = help_text,     \
                                             .channels = 3,         \
                                             .height = 224,         \
                                             .width = 224,          \
                                             .min_size = min,       \
                                             .num_classes = 1000,   \
                                             .is_classifier = true, \
                                             .build = build_function};

extern const struct cvy_init cvy_init_zero;
/* PyTorch's kaiming_normal_(mode="fan_out"), for a convolution to so many channels. */
struct cvy_init cvy_init_fan_out(int64_t channels, int64_t kernel);

/* Channels of x; 0 where the graph has an error. */
int64_t cvy_channels_of(const struct cvy_graph *g, cvy_value x);
/* An operator of one input and no attributes, by its name; NULL: x itself. */
cvy_value cvy_activate(struct cvy_graph *g, cvy_value x, const char *op);
/* N,C,H,W to N,C: the mean over the pixels. */
cvy_value cvy_global_pool(struct cvy_graph *g, cvy_value x);

/* A convolution without bias, padded to keep the size at stride 1, its batch norm, an activation. */
struct cvy_conv_norm {
    const char *conv, *norm; /* names */
    int64_t channels, kernel;
    int64_t stride, groups; /* 0: 1 */
    double eps, momentum;   /* of the batch norm; 0: its own */
    const char *activation; /* an operator; NULL: none */
    bool torch_init;        /* false: fan_out */
};
cvy_value cvy_conv_norm(struct cvy_graph *g, cvy_value x, const struct cvy_conv_norm *what);
/* ... called NAME.0 and NAME.1, which `what` need not say. */
cvy_value cvy_conv_norm_at(struct cvy_graph *g, cvy_value x, const char *name,
                           const struct cvy_conv_norm *what);

/* Squeeze-and-excitation (Hu et al. 2018): x times scale(fc2(activation(fc1(mean of x)))), channel by channel. */
struct cvy_squeeze {
    int64_t channels; /* between; 0: no such block */
    const char *activation, *scale;
    bool torch_bias; /* false: biases begin at 0 */
};
cvy_value cvy_squeeze_excitation(struct cvy_graph *g, cvy_value x, const char *name,
                                 const struct cvy_squeeze *what);

/* A mobile inverted residual (Sandler et al. 2018): 1x1 to `expanded` channels, depthwise, squeeze-and-excitation, 1x1
   to `channels`; added to x where the shape stays. Layers are called NAME.0, NAME.1, …. */
struct cvy_inverted {
    int64_t expanded, channels, kernel, stride;
    const char *activation;
    struct cvy_squeeze squeeze;
    double eps, momentum;
    double drop;   /* stochastic depth: probability of leaving the block out */
    bool is_plain; /* the last convolution and its norm are two layers, not one pair of them */
};
cvy_value cvy_inverted_residual(struct cvy_graph *g, cvy_value x, const char *name,
                                const struct cvy_inverted *what);

#endif
