/* For tests of sessions: trainings that must all end with the same bits, whatever the strategy, the devices, the
   backend with its order of things, in one call or in three, and with programs that went through text. */
#ifndef CVY_ENGINE_SESSION_MATRIX_H
#define CVY_ENGINE_SESSION_MATRIX_H

#include "engine/session_case.h"

#include <string.h>

struct setup {
    const char *devices, *strategy;
    bool is_split, from_text;
    const char *schedule, *mesh;
};

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

/* Five updates; sizes: full, ragged, fewer images than shards. When the plan takes updates of several batches, two more
   such updates. The hash of the weights and evaluation's losses. */
static inline uint64_t train(const cvy_plan_options *options, bool is_split, bool from_text, double *loss) {
    static const int64_t sizes[] = {BATCH, BATCH, 6, 3, BATCH};
    struct run run = open_run(options);
    cvy_session *session = run.session;
    struct data data;
    float losses[BATCH];
    for (size_t i = 0; from_text && i < sizeof sizes / sizeof *sizes; i++)
        assert_ok(cvy_session_prepare(session, sizes[i], true, false));
    if (from_text) {
        assert_ok(cvy_session_prepare(session, BATCH, false, false));
        read_back_programs(session);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        draw(&data, i);
        bring_batch(session, batch_of(&data, sizes[i]), sizes[i], is_split, true);
    }
    for (int i = 0; options->accumulate > 1 && i < 2; i++) {
        bring_batch(session, batch_of(&data, BATCH), BATCH + 6, is_split, false);
        bring_batch(session, batch_of(&data, 6), BATCH + 6, is_split, true);
    }
    cvy_batch batch = batch_of(&data, BATCH);
    assert_ok(cvy_evaluate(session, &batch, losses, NULL, NULL));
    *loss = 0;
    for (int i = 0; i < BATCH; i++)
        *loss += losses[i];
    return close_run(&run);
}

/* Trains as a setup says; must end with these bits. */
static inline void check_bits(const struct setup *setup, const cvy_plan_options *options, uint64_t want,
                              double want_loss) {
    double loss = 0;
    uint64_t hash = train(options, setup->is_split, setup->from_text, &loss);
    if (hash != want || memcmp(&loss, &want_loss, sizeof loss) != 0)
        fail_msg("%s %s %s %s%s%s, S=%lld: weights %016llx, loss %.9g; wanted: %016llx, %.9g",
                 options->backend, setup->devices, setup->strategy, setup->schedule ? setup->schedule : "",
                 setup->is_split ? " split" : "", setup->from_text ? " from text" : "",
                 (long long)options->shards, (unsigned long long)hash, loss, (unsigned long long)want,
                 want_loss);
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

#endif
