/* For tests of sessions: trainings that must all end with the same bits, whatever the strategy, the devices, the backend
   with its order of things, in one call or in three, and with programs that went through text. */
#ifndef CVY_ENGINE_SESSION_MATRIX_H
#define CVY_ENGINE_SESSION_MATRIX_H

#include "engine/session_case.h"

#include <string.h>

struct setup {
    const char *devices, *strategy;
    bool is_split, from_text;
    const char *schedule, *mesh;
};

static inline void read_back_programs(cvy_session *session) {
    for (int d = 0; d < session->plan->team.n; d++) {
        struct cvy_text text = {0};
        assert_ok(cvy_program_print(session->plan->team.workers[d].program, session->plan->backend, &text));
        assert_ok(cvy_session_replace_program(session, d, text.data));
        cvy_text_free(&text);
    }
}

static inline void one_step(cvy_session *session, const cvy_batch *batch, bool is_split) {
    if (is_split) {
        assert_ok(cvy_forward(session, batch));
        assert_ok(cvy_backward(session));
        assert_ok(cvy_update(session));
    } else {
        assert_ok(cvy_step(session, batch));
    }
}

static inline cvy_plan_options options_of(const struct setup *setup, const char *backend, int threads) {
    return (cvy_plan_options){.devices = setup->devices,
                              .strategy = setup->strategy,
                              .schedule = setup->schedule,
                              .mesh = setup->mesh,
                              .backend = backend,
                              .batch_size = BATCH,
                              .shards = SHARDS,
                              .threads_per_device = threads,
                              .optimizer = "sgd",
                              .optimizer_attributes = "momentum=0.9 weight_decay=0.0005",
                              .seed = 3,
                              .first_bucket_mb = 0.002,
                              .bucket_mb = 0.004};
}

/* Five steps; sizes: full, ragged, fewer images than shards. The hash of the weights and evaluation's losses. */
static inline uint64_t train(const struct setup *setup, const char *backend, int threads, double *loss) {
    static const int64_t sizes[] = {BATCH, BATCH, 6, 3, BATCH};
    cvy_graph *g = make_graph();
    cvy_plan *plan;
    cvy_session *session;
    struct data data;
    float losses[BATCH];
    uint64_t hash = 0;
    const cvy_plan_options options = options_of(setup, backend, threads);
    assert_ok(cvy_plan_new(g, &options, &plan));
    assert_ok(cvy_session_new(plan, &session));
    for (size_t i = 0; setup->from_text && i < sizeof sizes / sizeof *sizes; i++)
        assert_ok(cvy_session_prepare(session, sizes[i], true, false));
    if (setup->from_text) {
        assert_ok(cvy_session_prepare(session, BATCH, false, false));
        read_back_programs(session);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        draw(&data, i);
        cvy_batch batch = batch_of(&data, sizes[i]);
        cvy_session_set_lr(session, 0.05);
        one_step(session, &batch, setup->is_split);
    }
    cvy_batch batch = batch_of(&data, BATCH);
    assert_ok(cvy_evaluate(session, &batch, losses, NULL, NULL));
    assert_ok(cvy_weights_hash(session, &hash));
    *loss = 0;
    for (int i = 0; i < BATCH; i++)
        *loss += losses[i];
    cvy_session_free(session);
    cvy_plan_free(plan);
    cvy_graph_free(g);
    return hash;
}

static const struct setup setups[] = {
    {"cpu:0", "single", false, false, NULL, NULL},
    {"cpu:0", "single", false, false, NULL, NULL},
    {"cpu:0", "single", true, false, NULL, NULL},
    {"cpu:0", "single", false, true, NULL, NULL},
    {"cpu:0", "ddp", false, false, NULL, NULL},
    {"cpu:0-1", "ddp", false, false, NULL, NULL},
    {"cpu:0-1", "ddp", true, false, NULL, NULL},
    {"cpu:0-1", "ddp", false, true, NULL, NULL},
    {"cpu:0-2", "ddp", false, false, NULL, NULL},
    {"cpu:0-2", "ddp", true, false, NULL, NULL},
    {"cpu:0-3", "ddp", false, false, NULL, NULL},
    {"cpu:0", "dp", false, false, NULL, NULL},
    {"cpu:0-1", "dp", false, false, NULL, NULL},
    {"cpu:0-1", "dp", true, false, NULL, NULL},
    {"cpu:0-3", "dp", false, true, NULL, NULL},
    {"cpu:0-1", "mp", false, false, NULL, NULL},
    {"cpu:0-1", "mp", true, false, NULL, NULL},
    {"cpu:0-3", "mp", false, false, NULL, NULL},
    {"cpu:0-1", "pipeline", false, false, "gpipe", NULL},
    {"cpu:0-1", "pipeline", false, false, "1f1b", NULL},
    {"cpu:0-1", "pipeline", true, false, "gpipe", NULL},
    {"cpu:0-2", "pipeline", false, true, "1f1b", NULL},
    {"cpu:0-3", "pipeline", false, false, "1f1b", NULL},
    {"cpu:0-7", "pipeline", false, false, "gpipe", NULL},
    {"cpu:0-3", "hybrid", false, false, "1f1b", "data=2,pipe=2"},
    {"cpu:0-5", "hybrid", false, false, "gpipe", "data=2,pipe=3"},
    {"cpu:0-5", "hybrid", true, false, "gpipe", "data=3,pipe=2"},
};
enum { N_SETUPS = sizeof setups / sizeof *setups };

/* Trains as each setup says; all must end as the first one does. */
static inline void check_same_bits(const char *backend, int threads, uint64_t first, double first_loss) {
    double loss = 0;
    for (size_t i = 0; i < N_SETUPS; i++) {
        uint64_t hash = train(&setups[i], backend, threads, &loss);
        if (hash != first || memcmp(&loss, &first_loss, sizeof loss) != 0)
            fail_msg("%s %s %s %s%s%s: weights %016llx, loss %.9g; single: %016llx, %.9g", backend,
                     setups[i].devices, setups[i].strategy, setups[i].schedule ? setups[i].schedule : "",
                     setups[i].is_split ? " split" : "", setups[i].from_text ? " from text" : "",
                     (unsigned long long)hash, loss, (unsigned long long)first, first_loss);
    }
}

#endif
