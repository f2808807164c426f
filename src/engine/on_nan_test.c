/* --on-nan: an update with a number that is not finite stops the training, or is left out on all devices: all setups
   end with the bits of a training that never met that batch, but for the number of updates. */
#include "engine/session_matrix.h"

#include <math.h>
#include <stdlib.h>

enum { N_UPDATES = 4, BAD = 2 };

static cvy_plan_options guarded(const struct setup *setup, const char *backend, const char *on_nan) {
    cvy_plan_options options = options_of(setup, backend, 1);
    options.on_nan = on_nan;
    return options;
}

/* Updates of one batch each; the images of number BAD hold a NaN. The hash of the weights. */
static uint64_t train_spoilt(const cvy_plan_options *options) {
    struct run run = open_run(options);
    for (int i = 0; i < N_UPDATES; i++) {
        struct data data;
        draw(&data, (uint64_t)i);
        if (i == BAD)
            data.images[5] = NAN;
        uint64_t before, after;
        assert_ok(cvy_weights_hash(run.session, &before));
        bring_batch(run.session, batch_of(&data, BATCH), BATCH, false, true);
        assert_ok(cvy_weights_hash(run.session, &after));
        assert_int_equal(before == after, i == BAD); /* running statistics, too */
        assert_int_equal(run.session->scale.is_skipped, i == BAD);
    }
    assert_int_equal(run.session->scale.n_skipped, 1);
    return close_run(&run);
}

static void skipped_everywhere(void **state) {
    const char *backend = *state;
    cvy_plan_options options = guarded(&setups[0], backend, "skip");
    const uint64_t want = train_spoilt(&options);
    for (size_t i = 1; i < N_SETUPS; i++) {
        if (setups[i].is_split || setups[i].from_text)
            continue;
        options = guarded(&setups[i], backend, "skip");
        if (train_spoilt(&options) != want)
            fail_msg("%s %s: other weights", setups[i].devices, setups[i].strategy);
    }
}

/* Looking changes no bits. */
static void good_updates_stay(void **state) {
    (void)state;
    double loss = 0;
    cvy_plan_options options = guarded(&setups[5], "cpu", NULL);
    options.accumulate = 2;
    const uint64_t want = train(&options, false, false, &loss);
    options.on_nan = "skip";
    check_bits(&setups[5], &options, want, loss);
    options.on_nan = "stop";
    check_bits(&setups[5], &options, want, loss);
}

/* A convolution with zeros makes zeros of huge images, and the loss is finite; its gradient meets them. */
static void a_gradient_stops(void **state) {
    (void)state;
    const struct setup all[] = {{"cpu:0", "single", false, false, NULL, NULL},
                                {"cpu:0-1", "ddp", false, false, NULL, NULL},
                                {"cpu:0-1", "pipeline", false, false, NULL, NULL}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cvy_plan_options options = guarded(&all[i], "cpu", "stop");
        struct run run = open_run(&options);
        struct data data;
        draw(&data, 0);
        static float zeros[16 * CHANNELS * 9];
        float ones[16], large[16];
        for (int k = 0; k < 16; k++) {
            ones[k] = 1;
            large[k] = 1e6F;
        }
        for (size_t k = 0; k < sizeof data.images / sizeof *data.images; k++)
            data.images[k] *= 1e37F;
        assert_ok(cvy_session_write(run.session, "a.weight", zeros));
        assert_ok(cvy_session_write(run.session, "an.weight", large));
        assert_ok(
            cvy_session_write(run.session, "an.bias", ones)); /* on the side of relu that has a gradient */
        cvy_batch batch = batch_of(&data, BATCH);
        uint64_t before, after;
        assert_ok(cvy_weights_hash(run.session, &before));
        assert_fails(cvy_step(run.session, &batch), CVY_ERR_NAN, "the gradient of a.weight is not finite");
        assert_ok(cvy_weights_hash(run.session, &after));
        assert_int_equal(before, after);
        close_run(&run);
    }
}

static void only_two_ways(void **state) {
    (void)state;
    cvy_plan_options options = guarded(&setups[0], "cpu", "go on");
    cvy_graph *g = make_graph();
    cvy_plan *plan;
    assert_fails(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE, "take stop or skip");
    cvy_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(skipped_everywhere, (void *)"cpu"),
        cmocka_unit_test_prestate(skipped_everywhere, (void *)"reference"),
        cmocka_unit_test_prestate(skipped_everywhere, (void *)"async"),
        cmocka_unit_test(good_updates_stay),
        cmocka_unit_test(a_gradient_stops),
        cmocka_unit_test(only_two_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
