/* Mixed precision on the reference backend: the same bits in all strategies, other bits than without it, losses that
   stay near; and what is no precision is refused. (The CPU's own: amp_cpu_test.c.) */
#include "engine/session_scaled.h"

#include <math.h>

static void same_bits(void **state) {
    cvy_plan_options options = options_of(&setups[0], "reference", 1);
    options.accumulate = 2;
    options.amp = *state;
    double loss = 0, plain_loss = 0;
    uint64_t want = train(&options, false, false, &loss);
    options.amp = NULL;
    assert_true(train(&options, false, false, &plain_loss) != want);
    assert_true(isfinite(loss) && fabs(loss - plain_loss) < 0.02 * plain_loss);
    for (size_t i = 1; i < N_SETUPS; i++) {
        options = options_of(&setups[i], "reference", 1);
        options.accumulate = 2;
        options.amp = *state;
        check_bits(&setups[i], &options, want, loss);
    }
}

/* Statistics over all shards are float32, as those within a shard are. */
static void same_bits_with_sync_bn(void **state) {
    double loss = 0;
    uint64_t want = 0;
    for (size_t i = 0; i < N_SETUPS; i++) {
        const char *strategy = setups[i].strategy;
        cvy_plan_options options = options_of(&setups[i], "reference", 1);
        options.amp = *state;
        options.sync_bn = true;
        if (i == 0)
            want = train(&options, false, false, &loss);
        else if (strcmp(strategy, "single") == 0 || strcmp(strategy, "ddp") == 0 ||
                 strcmp(strategy, "dp") == 0)
            check_bits(&setups[i], &options, want, loss);
    }
}

/* ---- fp16 ---------------------------------------------------------------------------------------------- */

static cvy_plan_options reference_options(const struct setup *setup) {
    cvy_plan_options options = options_of(setup, "reference", 1);
    options.accumulate = 2;
    return options;
}

static void same_updates_are_skipped(void **state) {
    (void)state;
    check_scaled(reference_options, setups, N_SETUPS);
}

/* A skipped update leaves everything as it was: weights, running statistics, momentum. */
static void skipped_update_changes_nothing(void **state) {
    (void)state;
    cvy_plan_options options = options_of(&setups[0], "reference", 1);
    options.amp = "fp16";
    struct run run = open_run(&options);
    struct data data;
    uint64_t before, after;
    draw(&data, 0);
    bring_batch(run.session, batch_of(&data, BATCH), BATCH, false, true);
    assert_false(run.session->scale.is_skipped);
    assert_ok(cvy_weights_hash(run.session, &before));
    run.session->scale.scale = TOO_LARGE;
    bring_batch(run.session, batch_of(&data, BATCH), BATCH, false, true);
    assert_ok(cvy_weights_hash(run.session, &after));
    assert_true(run.session->scale.is_skipped && after == before);
    assert_true(run.session->scale.scale == TOO_LARGE / 2 && run.session->scale.n_good == 0);
    assert_int_equal(cvy_session_updates(run.session), 2);
    close_run(&run);
}

/* Doubled after enough good updates, and refused when it is too small to help. */
static void scale_grows(void **state) {
    (void)state;
    struct cvy_loss_scale s = cvy_loss_scale_begin();
    assert_true(s.scale == 65536);
    for (int i = 0; i < CVY_GROWTH_INTERVAL - 1; i++)
        assert_ok(cvy_loss_scale_settle(&s, false));
    assert_true(s.scale == 65536);
    assert_ok(cvy_loss_scale_settle(&s, false));
    assert_true(s.scale == 131072 && s.n_good == 0);
    cvy_status status = CVY_OK;
    int n = 0;
    while ((status = cvy_loss_scale_settle(&s, true)) == CVY_OK)
        n++;
    assert_int_equal(status, CVY_ERR_NAN);
    assert_int_equal(n, 41); /* 2^17 down to 2^-24 */
}

static void refused(void **state) {
    (void)state;
    cvy_graph *g = make_graph();
    cvy_plan *plan = NULL;
    cvy_plan_options options = options_of(&setups[0], "reference", 1);
    options.amp = "fp8";
    assert_int_equal(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE);
    assert_non_null(strstr(cvy_error(), "take bf16 or fp16"));
    cvy_graph_free(g);
}

/* Every parameter is cast once after its update, not for each shard: no forward segment holds a cast of one. */
static void one_cast_of_a_weight(void **state) {
    (void)state;
    cvy_plan_options options = options_of(&setups[0], "reference", 1);
    options.amp = "bf16";
    struct run run = open_run(&options);
    const struct cvy_program *p = run.plan->team.workers[0].program;
    int n_update = 0, n_forward = 0;
    for (size_t s = 0; s < p->segments.n; s++) {
        const struct cvy_segment *segment = &p->segments.data[s];
        for (size_t k = 0; k < segment->ops.n; k++) {
            const struct cvy_prog_op *op = &segment->ops.data[k];
            if (strcmp(op->op->name, "cast") != 0)
                continue;
            n_update += segment->phase == CVY_PHASE_UPDATE;
            n_forward += segment->phase == CVY_PHASE_FORWARD;
            if (segment->phase == CVY_PHASE_FORWARD)
                assert_true(segment->operands.data[op->in[0]].place.space == CVY_SPACE_SLOT);
        }
    }
    assert_int_equal(n_update, 5); /* two convolutions, one with a bias, and a linear layer with one */
    assert_true(n_forward > 0);
    close_run(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(same_bits, "bf16"),
        cmocka_unit_test_prestate(same_bits_with_sync_bn, "bf16"),
#ifndef CVY_SANITIZED /* the same code with other numbers, in many seconds */
        cmocka_unit_test_prestate(same_bits, "fp16"),
        cmocka_unit_test_prestate(same_bits_with_sync_bn, "fp16"),
#endif
        cmocka_unit_test(same_updates_are_skipped),
        cmocka_unit_test(skipped_update_changes_nothing),
        cmocka_unit_test(scale_grows),
        cmocka_unit_test(refused),
        cmocka_unit_test(one_cast_of_a_weight),
    };
    return cmocka_run_group_tests_name("engine.amp", tests, NULL, NULL);
}
