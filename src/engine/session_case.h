/* For tests of sessions: a small network with every kind of node, batches of noise for it, and its trainings. */
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
static inline cvy_graph *make_graph_of(int64_t side) {
    cvy_graph *g;
    assert_ok(cvy_graph_new(&g));
    cvy_value x = cvy_input(g, "images", CHANNELS, side, side), labels = cvy_labels(g);
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

static inline cvy_graph *make_graph(void) { return make_graph_of(SIZE); }

/* ---- trainings ----------------------------------------------------------------------------------------- */

struct run {
    cvy_plan *plan;
    cvy_session *session;
};

static inline struct run open_run(const cvy_plan_options *options) {
    struct run run;
    cvy_graph *g = make_graph();
    assert_ok(cvy_plan_new(g, options, &run.plan));
    assert_ok(cvy_session_new(run.plan, &run.session));
    cvy_graph_free(g);
    cvy_session_set_lr(run.session, 0.05);
    return run;
}

/* The hash of the weights. */
static inline uint64_t close_run(struct run *run) {
    uint64_t hash;
    assert_ok(cvy_weights_hash(run->session, &hash));
    cvy_session_free(run->session);
    cvy_plan_free(run->plan);
    return hash;
}

static inline void read_back_programs(cvy_session *session) {
    for (int d = 0; d < session->plan->team.n; d++) {
        struct cvy_text text = {0};
        assert_ok(cvy_program_print(session->plan->team.workers[d].program, session->plan->backend, &text));
        assert_ok(cvy_session_replace_program(session, d, text.data));
        cvy_text_free(&text);
    }
}

/* A batch of an update of n_update images. */
static inline void bring_batch(cvy_session *session, cvy_batch batch, int64_t n_update, bool is_split,
                               bool is_last) {
    batch.n_update = n_update;
    if (!is_split) {
        assert_ok(cvy_step(session, &batch));
        return;
    }
    assert_ok(cvy_forward(session, &batch));
    assert_ok(cvy_backward(session));
    if (is_last)
        assert_ok(cvy_update(session));
}

#endif
