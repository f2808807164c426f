/* Training images that change their size: the same bits whatever the devices, those of a plan made for that size, and
   those of a session that never had another; a network of one size refuses. */
#include "engine/session_matrix.h"

#include <string.h>

enum { SMALL = 6 };

static cvy_batch batch_of_side(const struct data *data, int64_t n, int64_t side) {
    cvy_batch batch = batch_of(data, n);
    batch.height = batch.width = side;
    return batch;
}

static void resize_to(cvy_session *session, int64_t side) {
    const int64_t n[2] = {BATCH, 6};
    cvy_graph *g = make_graph_of(side);
    assert_ok(cvy_session_resize(session, g, n));
    cvy_graph_free(g);
}

static void step(cvy_session *session, uint64_t which, int64_t n, int64_t side, bool is_split) {
    struct data data;
    draw(&data, which);
    bring_batch(session, batch_of_side(&data, n, side), n, is_split, true);
}

/* Small, the plan's own size, small again; an evaluation, of the plan's own size, between. */
static uint64_t train_growing(const cvy_plan_options *options, bool is_split) {
    struct run run = open_run(options);
    struct data data;
    float losses[BATCH];
    draw(&data, 9);
    cvy_batch batch = batch_of(&data, BATCH);
    resize_to(run.session, SMALL);
    step(run.session, 0, BATCH, SMALL, is_split);
    step(run.session, 1, 6, SMALL, is_split);
    assert_ok(cvy_evaluate(run.session, &batch, losses, NULL, NULL));
    resize_to(run.session, SIZE);
    step(run.session, 2, BATCH, SIZE, is_split);
    resize_to(run.session, SMALL);
    step(run.session, 3, 3, SMALL, is_split);
    return close_run(&run);
}

static void same_bits_on(const char *backend) {
    cvy_plan_options options = options_of(&setups[0], backend, 1);
    uint64_t hash = train_growing(&options, false);
    for (size_t i = 0; i < N_SETUPS; i++) {
        options = options_of(&setups[i], backend, 1);
        uint64_t other = train_growing(&options, setups[i].is_split);
        if (other != hash)
            fail_msg("%s %s: %016llx, not %016llx", setups[i].devices, setups[i].strategy,
                     (unsigned long long)other, (unsigned long long)hash);
    }
}

static void same_bits_on_reference(void **state) {
    (void)state;
    same_bits_on("reference");
}

static void same_bits_on_cpu(void **state) {
    (void)state;
    same_bits_on("cpu");
}

/* Layouts are all plain on the reference backend: nothing of the larger size can be left over. */
static void as_a_plan_of_that_size(void **state) {
    (void)state;
    cvy_plan_options options = options_of(&setups[0], "reference", 1);
    struct run resized = open_run(&options), small;
    cvy_graph *g = make_graph_of(SMALL);
    assert_ok(cvy_plan_new(g, &options, &small.plan));
    assert_ok(cvy_session_new(small.plan, &small.session));
    cvy_session_set_lr(small.session, 0.05);
    cvy_graph_free(g);
    resize_to(resized.session, SMALL);
    for (uint64_t k = 0; k < 3; k++) {
        step(resized.session, k, BATCH, SMALL, false);
        step(small.session, k, BATCH, SMALL, false);
    }
    assert_true(close_run(&resized) == close_run(&small));
}

/* What was compiled for another size before leaves no trace. */
static void sizes_before_do_not_count(void **state) {
    (void)state;
    cvy_plan_options options = options_of(&setups[0], "cpu", 1);
    struct run straight = open_run(&options), round = open_run(&options);
    for (int64_t side = 3; side < SMALL; side++)
        resize_to(round.session, side);
    resize_to(round.session, SMALL);
    resize_to(straight.session, SMALL);
    for (uint64_t k = 0; k < 3; k++) {
        step(straight.session, k, BATCH, SMALL, false);
        step(round.session, k, BATCH, SMALL, false);
    }
    assert_true(close_run(&straight) == close_run(&round));
}

static void expect_refused(cvy_session *session, const cvy_graph *g, const char *part) {
    const int64_t n[2] = {BATCH, 0};
    assert_int_equal(cvy_session_resize(session, g, n), CVY_ERR_USAGE);
    if (!strstr(cvy_error(), part))
        fail_msg("'%s' does not say '%s'", cvy_error(), part);
}

static void refuses(void **state) {
    (void)state;
    cvy_plan_options options = options_of(&setups[0], "cpu", 1);
    struct run run = open_run(&options);
    struct data data;
    cvy_graph *large = make_graph_of(SIZE + 1), *fixed;
    expect_refused(run.session, large, "of its size or smaller");
    assert_ok(cvy_graph_new(&fixed));
    cvy_value x = cvy_flatten(fixed, cvy_input(fixed, "images", CHANNELS, SMALL, SMALL));
    x = cvy_linear(fixed, x, &(cvy_linear_args){.name = "fc", .out_features = CLASSES});
    cvy_cross_entropy(fixed, x, cvy_labels(fixed), 0.1);
    expect_refused(run.session, fixed, "depends on the size of the images");
    step(run.session, 0, BATCH, SIZE, false); /* nothing has changed */
    draw(&data, 1);
    cvy_batch batch = batch_of_side(&data, BATCH, SMALL);
    assert_int_equal(cvy_step(run.session, &batch), CVY_ERR_USAGE);
    assert_non_null(strstr(cvy_error(), "3x6x6, this model takes 3x8x8"));
    batch = batch_of(&data, BATCH);
    assert_ok(cvy_forward(run.session, &batch));
    cvy_graph *small = make_graph_of(SMALL);
    expect_refused(run.session, small, "between two updates");
    cvy_graph_free(large);
    cvy_graph_free(fixed);
    cvy_graph_free(small);
    (void)close_run(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_on_reference),
        cmocka_unit_test(same_bits_on_cpu),
        cmocka_unit_test(as_a_plan_of_that_size),
        cmocka_unit_test(sizes_before_do_not_count),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
