/* Clipping the norm of the gradients: the factor that it should be; the same bits in all strategies, with split calls,
   updates of several batches, programs from text and skipped updates; and a norm that is not finite. */
#include "engine/session_scaled.h"

#include <math.h>

/* Below the norms of the first steps of session_matrix.h. */
static const double LIMIT = 2;

static cvy_plan_options clipped(const struct setup *setup, const char *backend) {
    cvy_plan_options options = options_of(setup, backend, 1);
    options.clip_grad_norm = LIMIT;
    options.accumulate = 2;
    return options;
}

static void same_bits(void **state) {
    const char *backend = *state;
    double loss, plain_loss;
    cvy_plan_options options = clipped(&setups[0], backend);
    uint64_t want = train(&options, false, false, &loss);
    options.clip_grad_norm = 0;
    assert_true(train(&options, false, false, &plain_loss) != want);
    for (size_t i = 1; i < N_SETUPS; i++) {
        options = clipped(&setups[i], backend);
        check_bits(&setups[i], &options, want, loss);
    }
}

static cvy_plan_options clipped_on_reference(const struct setup *setup) {
    return clipped(setup, "reference");
}

static void same_bits_where_updates_are_skipped(void **state) {
    static const struct setup some[] = {
        {"cpu:0", "single", false, false, NULL, NULL},
        {"cpu:0-1", "ddp", true, false, NULL, NULL},
        {"cpu:0-3", "hybrid", false, false, "1f1b", "data=2,pipe=2"},
    };
    (void)state;
    check_scaled(clipped_on_reference, some, sizeof some / sizeof *some);
}

/* ---- the factor ---------------------------------------------------------------------------------------- */

static const char *const params[] = {"a.weight",  "an.weight", "an.bias",   "b.weight", "b.bias",
                                     "bn.weight", "bn.bias",   "fc.weight", "fc.bias"};
enum { N_PARAMS = sizeof params / sizeof *params, MAX_FLOATS = 4096 };
typedef float values[N_PARAMS][MAX_FLOATS];

static void read_params(cvy_session *session, values out) {
    for (int i = 0; i < N_PARAMS; i++)
        assert_ok(cvy_session_read(session, params[i], out[i]));
}

/* One update, w -= lr min(1, limit / (||g|| + 1e-6)) g; returns ||g||. */
static double check_step(double limit, const char *backend) {
    static values before, gradient, after;
    cvy_plan_options options = options_of(&setups[0], backend, 1);
    struct data data;
    cvy_metrics metrics;
    double sum = 0, error = 0, moved = 0;
    memset(gradient, 0, sizeof gradient);
    options.clip_grad_norm = limit;
    options.optimizer_attributes = "";
    struct run run = open_run(&options);
    draw(&data, 0);
    cvy_batch batch = batch_of(&data, BATCH);
    assert_ok(cvy_forward(run.session, &batch));
    assert_ok(cvy_backward(run.session));
    read_params(run.session, before);
    for (int i = 0; i < N_PARAMS; i++) {
        assert_ok(cvy_session_gradient(run.session, params[i], gradient[i]));
        for (int k = 0; k < MAX_FLOATS; k++)
            sum += (double)gradient[i][k] * (double)gradient[i][k];
    }
    assert_ok(cvy_update(run.session));
    read_params(run.session, after);
    cvy_session_metrics(run.session, &metrics);
    if (!(fabs(metrics.grad_norm - sqrt(sum)) <= 1e-6 * sqrt(sum)))
        fail_msg("the norm is %.9g, was said to be %.9g", sqrt(sum), metrics.grad_norm);
    double factor = fmin(1, limit / (sqrt(sum) + 1e-6));
    for (int i = 0; i < N_PARAMS; i++) {
        for (int k = 0; k < MAX_FLOATS; k++) {
            double step = 0.05 * factor * (double)gradient[i][k];
            error = fmax(error, fabs((double)before[i][k] - (double)after[i][k] - step));
            moved = fmax(moved, fabs(step));
        }
    }
    assert_true(moved > 0 && error <= 1e-6);
    close_run(&run);
    return sqrt(sum);
}

static void test_factor(void **state) {
    double norm = check_step(1e9, *state);
    check_step(norm / 3, *state);
    check_step(norm * 0.99, *state);
    assert_true(check_step(norm * 1.01, *state) == norm);
}

/* ---- what is refused ----------------------------------------------------------------------------------- */

/* The loss is finite, each gradient too, their norm is not. */
static void not_finite(void **state) {
    static float images[BATCH * CHANNELS * SIZE * SIZE], zeros[CLASSES * CHANNELS * SIZE * SIZE];
    const char *strategy = *state;
    const cvy_plan_options options = {.devices = strcmp(strategy, "single") ? "cpu:0-1" : "cpu:0",
                                      .strategy = strategy,
                                      .batch_size = BATCH,
                                      .optimizer = "sgd",
                                      .clip_grad_norm = 1};
    const int64_t labels[BATCH] = {0};
    cvy_graph *g;
    cvy_plan *plan;
    cvy_session *session;
    uint64_t before, after;
    assert_ok(cvy_graph_new(&g));
    cvy_value x = cvy_flatten(g, cvy_input(g, "images", CHANNELS, SIZE, SIZE));
    x = cvy_linear(g, x, &(cvy_linear_args){.name = "fc", .out_features = CLASSES});
    x = cvy_linear(g, x, &(cvy_linear_args){.name = "last", .out_features = CLASSES});
    cvy_output(g, "logits", x);
    cvy_cross_entropy(g, x, cvy_labels(g), 0);
    assert_ok(cvy_plan_new(g, &options, &plan));
    assert_ok(cvy_session_new(plan, &session));
    assert_ok(cvy_session_write(session, "fc.weight", zeros));
    assert_ok(cvy_session_spread(session));
    assert_ok(cvy_weights_hash(session, &before));
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        images[i] = 3e38f;
    cvy_batch batch = {.n = BATCH,
                       .channels = CHANNELS,
                       .height = SIZE,
                       .width = SIZE,
                       .dtype = CVY_F32,
                       .images = images,
                       .labels = labels,
                       .std = {1, 1, 1, 1}};
    assert_fails(cvy_step(session, &batch), CVY_ERR_NAN, "norm of the gradients is infinite");
    assert_ok(cvy_weights_hash(session, &after));
    assert_true(before == after);
    cvy_session_free(session);
    cvy_plan_free(plan);
    cvy_graph_free(g);
}

static void bad_limits(void **state) {
    (void)state;
    cvy_graph *g = make_graph();
    cvy_plan *plan;
    cvy_plan_options options = clipped(&setups[0], "cpu");
    options.clip_grad_norm = -1;
    assert_fails(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE, "at most -1");
    options.clip_grad_norm = NAN;
    assert_fails(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE, "at most nan");
    cvy_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(same_bits, "reference"),
        cmocka_unit_test_prestate(same_bits, "cpu"),
        cmocka_unit_test(same_bits_where_updates_are_skipped),
        cmocka_unit_test_prestate(test_factor, "reference"),
        cmocka_unit_test_prestate(test_factor, "cpu"),
        cmocka_unit_test_prestate(not_finite, "single"),
        cmocka_unit_test_prestate(not_finite, "ddp"),
        cmocka_unit_test_prestate(not_finite, "pipeline"),
        cmocka_unit_test(bad_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
