/* Blocks of models: see blocks.h. */
#include "models/blocks.h"

#include <math.h>

const struct cvy_init cvy_init_zero = {CVY_INIT_ZERO, 0};

struct cvy_init cvy_init_fan_out(int64_t channels, int64_t kernel) {
    return (struct cvy_init){CVY_INIT_NORMAL, sqrt(2 / (double)(channels * kernel * kernel))};
}

int64_t cvy_channels_of(const struct cvy_graph *g, cvy_value x) {
    return x == CVY_NONE ? 0 : cvy_graph_value(g, x)->desc.shape.dim[1];
}

cvy_value cvy_activate(struct cvy_graph *g, cvy_value x, const char *op) {
    return op ? cvy_apply(g, op, NULL, &x, 1, NULL) : x;
}

cvy_value cvy_global_pool(struct cvy_graph *g, cvy_value x) {
    return cvy_flatten(g, cvy_adaptive_avg_pool(g, x, 1, 1));
}

cvy_value cvy_conv_norm(struct cvy_graph *g, cvy_value x, const struct cvy_conv_norm *what) {
    const struct cvy_init init = cvy_init_fan_out(what->channels, what->kernel);
    const cvy_conv2d_args args = {.name = what->conv,
                                  .out_channels = what->channels,
                                  .kernel = what->kernel,
                                  .stride = what->stride,
                                  .padding = what->kernel / 2,
                                  .groups = what->groups,
                                  .no_bias = true};
    x = cvy_conv2d_init(g, x, &args, what->torch_init ? NULL : &init, NULL);
    x = cvy_batch_norm(
        g, x, &(cvy_batch_norm_args){.name = what->norm, .eps = what->eps, .momentum = what->momentum});
    return cvy_activate(g, x, what->activation);
}

cvy_value cvy_conv_norm_at(struct cvy_graph *g, cvy_value x, const char *name,
                           const struct cvy_conv_norm *what) {
    struct cvy_conv_norm named = *what;
    named.conv = cvy_layer_name(g, "%s.0", name);
    named.norm = cvy_layer_name(g, "%s.1", name);
    return cvy_conv_norm(g, x, &named);
}

cvy_value cvy_squeeze_excitation(struct cvy_graph *g, cvy_value x, const char *name,
                                 const struct cvy_squeeze *what) {
    const int64_t channels[2] = {what->channels, cvy_channels_of(g, x)};
    const char *const activation[2] = {what->activation, what->scale};
    cvy_value y = cvy_adaptive_avg_pool(g, x, 1, 1);
    if (x == CVY_NONE)
        return CVY_NONE;
    for (int k = 0; k < 2; k++) {
        const struct cvy_init init = cvy_init_fan_out(channels[k], 1);
        const cvy_conv2d_args args = {
            .name = cvy_layer_name(g, "%s.fc%d", name, k + 1), .out_channels = channels[k], .kernel = 1};
        y = cvy_conv2d_init(g, y, &args, &init, what->torch_bias ? NULL : &cvy_init_zero);
        y = cvy_activate(g, y, activation[k]);
    }
    return cvy_apply(g, "mul", cvy_layer_name(g, "%s.mul", name), (cvy_value[]){x, y}, 2, NULL);
}

cvy_value cvy_inverted_residual(struct cvy_graph *g, cvy_value x, const char *name,
                                const struct cvy_inverted *what) {
    struct cvy_conv_norm conv = {.channels = what->expanded,
                                 .kernel = 1,
                                 .eps = what->eps,
                                 .momentum = what->momentum,
                                 .activation = what->activation};
    bool is_residual = what->stride == 1 && cvy_channels_of(g, x) == what->channels;
    cvy_value y = x;
    int k = 0;
    if (what->expanded != cvy_channels_of(g, x))
        y = cvy_conv_norm_at(g, y, cvy_layer_name(g, "%s.%d", name, k++), &conv);
    conv.kernel = what->kernel;
    conv.stride = what->stride;
    conv.groups = what->expanded;
    y = cvy_conv_norm_at(g, y, cvy_layer_name(g, "%s.%d", name, k++), &conv);
    if (what->squeeze.channels)
        y = cvy_squeeze_excitation(g, y, cvy_layer_name(g, "%s.%d", name, k++), &what->squeeze);
    conv = (struct cvy_conv_norm){
        .channels = what->channels, .kernel = 1, .eps = what->eps, .momentum = what->momentum};
    if (what->is_plain) {
        conv.conv = cvy_layer_name(g, "%s.%d", name, k);
        conv.norm = cvy_layer_name(g, "%s.%d", name, k + 1);
        y = cvy_conv_norm(g, y, &conv);
    } else {
        y = cvy_conv_norm_at(g, y, cvy_layer_name(g, "%s.%d", name, k), &conv);
    }
    return is_residual ? cvy_add(g, cvy_stochastic_depth(g, y, what->drop), x) : y;
}
