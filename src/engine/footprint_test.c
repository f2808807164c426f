/* The memory that a plan says it needs is what its session takes; a plan that needs more than it may is refused, and
   what is named instead fits. */
#include "engine/session.h"
#include "small_network.h"

#include <stdlib.h>
#include <string.h>

struct setup {
    const char *devices, *strategy, *mesh, *schedule;
};

static cvy_plan_options options_of(const struct setup *setup) {
    cvy_plan_options options = good_options(setup->devices);
    options.strategy = setup->strategy;
    options.mesh = setup->mesh;
    options.schedule = setup->schedule;
    options.shards = 6;
    options.batch_size = 48;
    return options;
}

static cvy_plan *plan_of(const cvy_graph *g, const struct setup *setup) {
    cvy_plan_options options = options_of(setup);
    cvy_plan *plan;
    assert_ok(cvy_plan_new(g, &options, &plan));
    return plan;
}

static size_t bytes_of(const cvy_graph *g, const struct setup *setup) {
    cvy_plan *plan = plan_of(g, setup);
    size_t n = cvy_plan_bytes(plan);
    cvy_plan_free(plan);
    return n;
}

static void test_the_plan_knows_what_the_session_takes(void **state) {
    (void)state;
    static const struct setup setups[] = {{"cpu:0", "single", NULL, NULL},
                                          {"cpu:0-1", "dp", NULL, NULL},
                                          {"cpu:0-2", "ddp", NULL, NULL},
                                          {"cpu:0-1", "mp", NULL, NULL},
                                          {"cpu:0-1", "pipeline", NULL, "1f1b"},
                                          {"cpu:0-1", "pipeline", NULL, "gpipe"},
                                          {"cpu:0-3", "hybrid", "data=2,pipe=2", NULL}};
    cvy_graph *g = make_graph(16);
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) {
        size_t need[4];
        cvy_session *session;
        cvy_plan *plan = plan_of(g, &setups[i]);
        for (int d = 0; d < plan->team.n; d++)
            need[d] = cvy_worker_bytes(&plan->team.workers[d], false);
        assert_ok(cvy_session_new(plan, &session));
        for (int d = 0; d < plan->team.n; d++) {
            const struct cvy_worker *w = &plan->team.workers[d];
            assert_int_equal(w->arena_bytes + cvy_links_bytes(w), need[d]);
            assert_int_equal(cvy_links_bytes(w) > 0, plan->mesh.pipe > 1);
        }
        cvy_session_free(session);
        cvy_plan_free(plan);
    }
    cvy_graph_free(g);
}

static void test_the_limit_is_exact(void **state) {
    (void)state;
    const struct setup setup = {"cpu:0-1", "ddp", NULL, NULL};
    cvy_graph *g = make_graph(16);
    cvy_plan_options options = options_of(&setup);
    cvy_plan *plan = NULL;
    options.device_memory = (int64_t)bytes_of(g, &setup);
    assert_ok(cvy_plan_new(g, &options, &plan));
    cvy_plan_free(plan);
    plan = NULL;
    options.device_memory--;
    assert_fails(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE, "strategy ddp needs ");
    assert_null(plan);
    options.device_memory = 1;
    assert_fails(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE, "no other strategy fits");
    options.device_memory = -1;
    assert_fails(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE, "memory per device");
    cvy_graph_free(g);
}

/* Room for a stage with one shard in flight, and no more. */
/* Split calls keep every shard: what the plan was allowed for its own step does not do for them. */
static void test_later_growth_is_limited(void **state) {
    (void)state;
    const struct setup setup = {"cpu:0", "single", NULL, NULL};
    static float images[48 * SIDE * SIDE];
    static int64_t labels[48];
    cvy_graph *g = make_graph(16);
    cvy_plan_options options = options_of(&setup);
    cvy_plan *plan;
    cvy_session *session;
    cvy_batch batch = {.n = 48,
                       .channels = 1,
                       .height = SIDE,
                       .width = SIDE,
                       .dtype = CVY_F32,
                       .order = CVY_NCHW,
                       .images = images,
                       .labels = labels};
    options.device_memory = (int64_t)bytes_of(g, &setup);
    assert_ok(cvy_plan_new(g, &options, &plan));
    assert_ok(cvy_session_new(plan, &session));
    assert_fails(cvy_forward(session, &batch), CVY_ERR_USAGE, "is the limit");
    assert_ok(cvy_step(session, &batch));
    cvy_session_free(session);
    cvy_plan_free(plan);
    cvy_graph_free(g);
}

/* What the parts are for adds up, and a machine with less memory than that is told from one with enough. */
static void test_a_machine_has_too_little(void **state) {
    (void)state;
    const struct setup setup = {"cpu:0-1", "pipeline", NULL, NULL};
    cvy_graph *g = make_graph(16);
    cvy_plan *plan = plan_of(g, &setup);
    double all = 0;
    for (int d = 0; d < plan->team.n; d++) {
        const struct cvy_needs needs = cvy_worker_needs(&plan->team.workers[d]);
        assert_int_equal(needs.all, cvy_worker_bytes(&plan->team.workers[d], false));
        assert_true(needs.weights > 0 && needs.gradients > 0 && needs.activations > 0);
        all += (double)needs.all;
    }
    assert_ok(cvy_plan_check_free(plan, 0)); /* not known */
    assert_ok(cvy_plan_check_free(plan, all));
    assert_fails(cvy_plan_check_free(plan, all - 1), CVY_ERR_MEMORY, "activations");
    plan->options.device_memory = (int64_t)all;
    assert_ok(cvy_plan_check_free(plan, all - 1));
    cvy_plan_free(plan);
    cvy_graph_free(g);
}

/* Far more activations than what crosses a cut between two stages. */
static cvy_graph *make_deep_graph(void) {
    static const char *const convs[] = {"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"};
    cvy_graph *g = open_graph();
    cvy_value labels = cvy_labels(g), x = cvy_input(g, "images", 1, SIDE, SIDE);
    for (int k = 0; k < 8; k++)
        x = cvy_relu(g, cvy_conv2d(g, x,
                                   &(cvy_conv2d_args){
                                       .name = convs[k], .out_channels = 16, .kernel = 3, .padding = 1}));
    x = cvy_linear(g, cvy_flatten(g, x), &(cvy_linear_args){.name = "fc", .out_features = CLASSES});
    cvy_output(g, "logits", x);
    cvy_cross_entropy(g, x, labels, 0);
    assert_ok(cvy_graph_status(g));
    return g;
}

static void test_ways_out_are_right(void **state) {
    (void)state;
    static const struct setup ddp = {"cpu:0-1", "ddp", NULL, NULL}, mp = {"cpu:0-1", "mp", NULL, NULL},
                              gpipe = {"cpu:0-1", "pipeline", NULL, "gpipe"},
                              alternating = {"cpu:0-1", "pipeline", NULL, "1f1b"};
    cvy_graph *g = make_deep_graph();
    cvy_plan_options options = options_of(&ddp);
    cvy_plan *plan = NULL;
    options.device_memory = (int64_t)bytes_of(g, &mp);
    assert_true(bytes_of(g, &mp) < bytes_of(g, &ddp));
    assert_fails(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE, "these fit: --strategy mp (");
    assert_null(strstr(cvy_error(), "--strategy dp"));
    options = options_of(&gpipe);
    options.device_memory = (int64_t)bytes_of(g, &alternating);
    assert_true(bytes_of(g, &alternating) < bytes_of(g, &gpipe));
    assert_fails(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE, "--strategy pipeline --schedule 1f1b (");
    options.schedule = "1f1b";
    assert_ok(cvy_plan_new(g, &options, &plan));
    cvy_plan_free(plan);
    cvy_graph_free(g);
}

/* Most of the time is in the first layers, most of the parameters in the last: balanced by time alone, the last stage
   is by far the larger one. */
static cvy_graph *make_uneven_graph(void) {
    cvy_graph *g = open_graph();
    cvy_value labels = cvy_labels(g), x = cvy_input(g, "images", 1, SIDE, SIDE);
    static const char *const convs[] = {"c0", "c1", "c2", "c3"}, *const fcs[] = {"f0", "f1", "f2", "f3"};
    for (int k = 0; k < 4; k++)
        x = cvy_conv2d(g, x,
                       &(cvy_conv2d_args){.name = convs[k], .out_channels = 24, .kernel = 3, .padding = 1});
    x = cvy_flatten(g, x);
    for (int k = 0; k < 4; k++)
        x = cvy_linear(g, x, &(cvy_linear_args){.name = fcs[k], .out_features = k < 3 ? 256 : CLASSES});
    cvy_output(g, "logits", x);
    cvy_cross_entropy(g, x, labels, 0);
    assert_ok(cvy_graph_status(g));
    return g;
}

static void test_stages_are_cut_to_fit(void **state) {
    (void)state;
    const struct setup mp = {"cpu:0-1", "mp", NULL, NULL};
    cvy_graph *g = make_uneven_graph();
    cvy_plan_options options = options_of(&mp);
    cvy_plan *plan;
    size_t by_time = bytes_of(g, &mp);
    options.device_memory = (int64_t)(by_time - 1);
    assert_ok(cvy_plan_new(g, &options, &plan));
    assert_true(plan->is_tight && plan->is_fitting);
    cvy_plan_free(plan);
    options.device_memory = (int64_t)by_time;
    assert_ok(cvy_plan_new(g, &options, &plan));
    assert_false(plan->is_tight);
    cvy_plan_free(plan);
    cvy_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_plan_knows_what_the_session_takes),
        cmocka_unit_test(test_the_limit_is_exact),
        cmocka_unit_test(test_a_machine_has_too_little),
        cmocka_unit_test(test_later_growth_is_limited),
        cmocka_unit_test(test_ways_out_are_right),
        cmocka_unit_test(test_stages_are_cut_to_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
