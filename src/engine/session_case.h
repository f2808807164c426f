/* For tests of sessions: a small network with every kind of node, and batches of noise for it. */
#ifndef CVY_ENGINE_SESSION_CASE_H
#define CVY_ENGINE_SESSION_CASE_H

#include "base/rng.h"
#include "cvy_test.h"
#include "engine/session.h"

enum { CHANNELS = 3, SIZE = 8, CLASSES = 5, BATCH = 11, SHARDS = 4 };

struct data {
    float images[BATCH * CHANNELS * SIZE * SIZE];
    int64_t labels[BATCH];
};

static inline void draw(struct data *data, uint64_t step) {
    struct cvy_rng rng;
    cvy_rng_init(&rng, 7, CVY_RNG_TEST, step, 0);
    for (size_t i = 0; i < sizeof data->images / sizeof *data->images; i++)
        data->images[i] = (float)cvy_rng_normal(&rng);
    for (int i = 0; i < BATCH; i++)
        data->labels[i] = cvy_rng_below(&rng, CLASSES);
}

static inline cvy_batch batch_of(const struct data *data, int64_t n) {
    return (cvy_batch){.n = n,
                       .channels = CHANNELS,
                       .height = SIZE,
                       .width = SIZE,
                       .dtype = CVY_F32,
                       .order = CVY_NCHW,
                       .images = data->images,
                       .labels = data->labels,
                       .std = {1, 1, 1, 1}};
}

/* conv, batch-norm, a residual, dropout, pooling: every kind of node that a ResNet has, and dropout */
static inline cvy_graph *make_graph(void) {
    cvy_graph *g;
    assert_ok(cvy_graph_new(&g));
    cvy_value x = cvy_input(g, "images", CHANNELS, SIZE, SIZE), labels = cvy_labels(g);
    cvy_value a = cvy_conv2d(
        g, x,
        &(cvy_conv2d_args){.name = "a", .out_channels = 16, .kernel = 3, .padding = 1, .no_bias = true});
    a = cvy_relu(g, cvy_batch_norm(g, a, &(cvy_batch_norm_args){.name = "an"}));
    cvy_value b =
        cvy_conv2d(g, a, &(cvy_conv2d_args){.name = "b", .out_channels = 16, .kernel = 3, .padding = 1});
    b = cvy_batch_norm(g, b, &(cvy_batch_norm_args){.name = "bn"});
    b = cvy_relu(g, cvy_add(g, b, a));
    b = cvy_max_pool(g, b, &(cvy_pool_args){.name = "pool", .kernel = 2});
    b = cvy_dropout(g, cvy_flatten(g, cvy_adaptive_avg_pool(g, b, 2, 2)), 0.2);
    cvy_value logits = cvy_linear(g, b, &(cvy_linear_args){.name = "fc", .out_features = CLASSES});
    cvy_output(g, "logits", logits);
    cvy_cross_entropy(g, logits, labels, 0.1);
    assert_ok(cvy_graph_status(g));
    return g;
}

#endif
