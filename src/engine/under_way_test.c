/* Updates of several batches: the same bits under every strategy, in one call or in three; and the sum that their
   definition asks for, which shards of one batch show. */
#include "engine/session_case.h"

#include <math.h>
#include <string.h>

struct setup {
    const char *devices, *strategy, *schedule, *mesh;
    bool is_split;
    int64_t accumulate; /* 0: as many as are needed */
};

static cvy_plan_options options_of(const struct setup *setup, int64_t shards, int64_t batch_size) {
    return (cvy_plan_options){.devices = setup->devices,
                              .strategy = setup->strategy,
                              .schedule = setup->schedule,
                              .mesh = setup->mesh,
                              .backend = "cpu",
                              .batch_size = batch_size,
                              .accumulate = setup->accumulate,
                              .shards = shards,
                              .threads_per_device = 1,
                              .optimizer = "sgd",
                              .optimizer_attributes = "momentum=0.9 weight_decay=0.0005",
                              .seed = 3,
                              .first_bucket_mb = 0.002,
                              .bucket_mb = 0.004};
}

/* Images first .. first + n - 1 of `data` as one batch of an update of n_update. */
static cvy_batch part_of(const struct data *data, int64_t first, int64_t n, int64_t n_update) {
    cvy_batch batch = batch_of(data, n);
    batch.images = data->images + first * CHANNELS * SIZE * SIZE;
    batch.labels = data->labels + first;
    batch.n_update = n_update;
    return batch;
}

/* ---- the same bits --------------------------------------------------------------------------------- */

/* Four updates: three batches, of which the last needs a size that was not met before; two, with an evaluation
   between them; one; and three smaller than S. The loss of the last and of the evaluation go into *loss. */
static uint64_t train(const struct setup *setup, double *loss) {
    static const int64_t updates[][3] = {{BATCH, BATCH, 6}, {BATCH, 3, 0}, {BATCH, 0, 0}, {2, 3, 1}};
    cvy_plan_options options = options_of(setup, SHARDS, BATCH);
    struct run run = open_run(&options);
    struct data data;
    float losses[BATCH];
    cvy_metrics metrics;
    uint64_t n_drawn = 0;
    for (size_t u = 0; u < sizeof updates / sizeof *updates; u++) {
        const int64_t *n = updates[u];
        for (int k = 0; k < 3 && n[k]; k++) {
            draw(&data, n_drawn++);
            cvy_batch batch = part_of(&data, 0, n[k], n[0] + n[1] + n[2]);
            bring_batch(run.session, batch, batch.n_update, setup->is_split, k == 2 || !n[k + 1]);
            if (u == 1)
                assert_ok(cvy_evaluate(run.session, &batch, losses, NULL, NULL));
        }
    }
    assert_int_equal(cvy_session_updates(run.session), 4);
    cvy_session_metrics(run.session, &metrics);
    *loss = metrics.loss + (double)losses[0];
    return close_run(&run);
}

static void same_bits(void **state) {
    (void)state;
    static const struct setup setups[] = {
        {"cpu:0", "single", NULL, NULL, false, 3},
        {"cpu:0", "single", NULL, NULL, true, 3},
        {"cpu:0", "single", NULL, NULL, false, 5}, /* more room than is needed */
        {"cpu:0-1", "ddp", NULL, NULL, false, 3},
        {"cpu:0-1", "ddp", NULL, NULL, true, 3},
        {"cpu:0-3", "ddp", NULL, NULL, false, 3},
        {"cpu:0-1", "dp", NULL, NULL, false, 3},
        {"cpu:0-2", "dp", NULL, NULL, true, 3},
        {"cpu:0-1", "mp", NULL, NULL, false, 3},
        {"cpu:0-1", "pipeline", "1f1b", NULL, false, 3},
        {"cpu:0-2", "pipeline", "gpipe", NULL, false, 3},
        {"cpu:0-1", "pipeline", "gpipe", NULL, true, 3},
        {"cpu:0-3", "hybrid", "1f1b", "data=2,pipe=2", false, 3},
        {"cpu:0-3", "hybrid", "gpipe", "data=2,pipe=2", true, 3},
    };
    double loss = 0, first_loss = 0;
    uint64_t first = train(&setups[0], &first_loss);
    for (size_t i = 1; i < sizeof setups / sizeof *setups; i++) {
        uint64_t hash = train(&setups[i], &loss);
        if (hash != first || memcmp(&loss, &first_loss, sizeof loss) != 0)
            fail_msg("%s %s%s: weights %016llx, loss %.9g; single: %016llx, %.9g", setups[i].devices,
                     setups[i].strategy, setups[i].is_split ? " split" : "", (unsigned long long)hash, loss,
                     (unsigned long long)first, first_loss);
    }
}

/* Room for several batches does not change an update of one. */
static void one_is_as_before(void **state) {
    (void)state;
    uint64_t hash[2];
    for (int k = 0; k < 2; k++) {
        struct setup setup = {.devices = "cpu:0-1", .strategy = "ddp", .accumulate = k ? 4 : 0};
        cvy_plan_options options = options_of(&setup, SHARDS, BATCH);
        struct run run = open_run(&options);
        struct data data;
        for (uint64_t step = 0; step < 3; step++) {
            draw(&data, step);
            cvy_batch batch = part_of(&data, 0, BATCH - (int64_t)step, k ? BATCH - (int64_t)step : 0);
            assert_ok(cvy_step(run.session, &batch));
        }
        hash[k] = close_run(&run);
    }
    assert_int_equal(hash[0], hash[1]);
}

/* ---- the definition -------------------------------------------------------------------------------- */

/* ((t1 + t2) + t3) over three batches with one shard each is what the tree makes of three shards: the divisor,
   dropout's positions, and batch-norm's running statistics included. */
static void batches_are_as_shards(void **state) {
    (void)state;
    enum { PART = 3, N = 3 * PART };
    cvy_metrics whole, parts;
    struct setup setup = {.devices = "cpu:0", .strategy = "single", .accumulate = 3};
    cvy_plan_options three = options_of(&setup, 1, PART), one = options_of(&setup, 3, N);
    struct run a = open_run(&three), b = open_run(&one);
    struct data data;
    for (uint64_t step = 0; step < 3; step++) {
        draw(&data, step);
        for (int64_t k = 0; k < 3; k++) {
            cvy_batch part = part_of(&data, k * PART, PART, N);
            assert_ok(cvy_step(a.session, &part));
        }
        cvy_batch all = part_of(&data, 0, N, 0);
        assert_ok(cvy_step(b.session, &all));
        cvy_session_metrics(a.session, &parts);
        cvy_session_metrics(b.session, &whole);
        assert_memory_equal(&parts, &whole, sizeof whole);
        assert_int_equal(parts.n, N);
    }
    assert_int_equal(close_run(&a), close_run(&b));
}

/* ---- metrics, order of the calls --------------------------------------------------------------------- */

/* In the middle of an update: the mean over the images that are in. */
static void metrics_of_a_part(void **state) {
    (void)state;
    struct setup setup = {.devices = "cpu:0", .strategy = "single", .accumulate = 2};
    cvy_plan_options options = options_of(&setup, 1, BATCH);
    struct run a = open_run(&options), b = open_run(&options);
    struct data data;
    cvy_metrics part, alone;
    draw(&data, 0);
    cvy_batch batch = part_of(&data, 0, 5, 15), same = part_of(&data, 0, 5, 0);
    assert_ok(cvy_step(a.session, &batch));
    assert_ok(cvy_step(b.session, &same));
    cvy_session_metrics(a.session, &part);
    cvy_session_metrics(b.session, &alone);
    assert_int_equal(part.n, 5);
    assert_int_equal(part.top1, alone.top1);
    assert_int_equal(part.top5, alone.top5);
    assert_true(fabs(part.loss - alone.loss) < 1e-6 * alone.loss);
    assert_int_equal(cvy_session_updates(a.session), 0);
    assert_int_not_equal(close_run(&a), close_run(&b));
}

static void refusals(void **state) {
    (void)state;
    struct setup setup = {.devices = "cpu:0-1", .strategy = "ddp", .accumulate = 2}, none = setup;
    none.accumulate = 0;
    cvy_plan_options options = options_of(&setup, SHARDS, BATCH), single = options_of(&none, SHARDS, BATCH);
    struct data data;
    draw(&data, 0);
    struct run run = open_run(&single);
    cvy_batch batch = part_of(&data, 0, 5, 10);
    assert_fails(cvy_step(run.session, &batch), CVY_ERR_USAGE, "set cvy_plan_options.accumulate");
    close_run(&run);

    run = open_run(&options);
    batch.n_update = 4;
    assert_fails(cvy_step(run.session, &batch), CVY_ERR_USAGE, "5 images, its update 4");
    batch.n_update = 2 * BATCH + 1;
    assert_fails(cvy_forward(run.session, &batch), CVY_ERR_USAGE, "up to 2 batches of up to 11");
    batch.n_update = 8;
    assert_ok(cvy_forward(run.session, &batch));
    assert_ok(cvy_backward(run.session));
    assert_fails(cvy_update(run.session), CVY_ERR_USAGE, "5 of the 8 images");
    assert_fails(cvy_step(run.session, &batch), CVY_ERR_USAGE, "does not go on with 5 of 8");
    batch.n = 3;
    batch.n_update = 9;
    assert_fails(cvy_step(run.session, &batch), CVY_ERR_USAGE, "cvy_discard");
    cvy_discard(run.session);
    batch = part_of(&data, 0, 5, 0); /* after the discarded ones as if there had been none */
    assert_ok(cvy_step(run.session, &batch));
    struct run fresh = open_run(&options);
    assert_ok(cvy_step(fresh.session, &batch));
    assert_int_equal(close_run(&run), close_run(&fresh));
}

/* A bad batch ends the whole update; what was added before it is forgotten. */
static void bad_loss_forgets(void **state) {
    (void)state;
    struct setup setup = {.devices = "cpu:0-1", .strategy = "dp", .accumulate = 3};
    cvy_plan_options options = options_of(&setup, SHARDS, BATCH);
    struct data data, bad;
    draw(&data, 0);
    bad = data;
    bad.images[0] = NAN;
    cvy_batch part = part_of(&data, 0, 5, 15), spoilt = part_of(&bad, 0, 5, 15),
              good = part_of(&data, 0, 7, 0);
    struct run run = open_run(&options), fresh = open_run(&options);
    assert_ok(cvy_step(run.session, &part));
    assert_fails(cvy_step(run.session, &spoilt), CVY_ERR_NAN, "\"images\" of shard 0");
    assert_int_equal(cvy_session_updates(run.session), 0);
    assert_ok(cvy_step(run.session, &good));
    assert_ok(cvy_step(fresh.session, &good));
    assert_int_equal(close_run(&run), close_run(&fresh));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(one_is_as_before),
        cmocka_unit_test(batches_are_as_shards),
        cmocka_unit_test(metrics_of_a_part),
        cmocka_unit_test(refusals),
        cmocka_unit_test(bad_loss_forgets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
