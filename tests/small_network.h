/* A small network with everything that a session has to do with: a convolution, batch-norm with its buffers, labels
   and a loss. For tests of the public interface. */
#ifndef CVY_TESTS_SMALL_NETWORK_H
#define CVY_TESTS_SMALL_NETWORK_H

#include "cvy_test.h"

enum { BATCH = 6, SIDE = 8, CLASSES = 3 };

static inline cvy_graph *open_graph(void) {
    cvy_graph *g;
    assert_ok(cvy_graph_new(&g));
    return g;
}

static inline cvy_value add_network(cvy_graph *g, int64_t conv_channels) {
    cvy_value x = cvy_input(g, "images", 1, SIDE, SIDE);
    x = cvy_conv2d(g, x, &(cvy_conv2d_args){.name = "conv", .out_channels = conv_channels, .kernel = 3});
    x = cvy_relu(g, cvy_batch_norm(g, x, &(cvy_batch_norm_args){.name = "bn"}));
    return cvy_linear(g, cvy_flatten(g, x), &(cvy_linear_args){.name = "fc", .out_features = CLASSES});
}

static inline cvy_graph *make_graph(int64_t conv_channels) {
    cvy_graph *g;
    assert_ok(cvy_graph_new(&g));
    cvy_value labels = cvy_labels(g), logits = add_network(g, conv_channels);
    cvy_output(g, "logits", logits);
    cvy_cross_entropy(g, logits, labels, 0);
    assert_ok(cvy_graph_status(g));
    return g;
}

static inline cvy_plan_options good_options(const char *devices) {
    return (cvy_plan_options){
        .devices = devices, .batch_size = BATCH, .shards = 2, .threads_per_device = 1, .optimizer = "sgd"};
}

#endif
