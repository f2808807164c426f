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
            need[d] = cvy_arena_bytes(&plan->team.workers[d], false);
        assert_ok(cvy_session_new(plan, &session));
        for (int d = 0; d < plan->team.n; d++)
            assert_int_equal(plan->team.workers[d].arena_bytes, need[d]);
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
static void test_ways_out_are_right(void **state) {
    (void)state;
    static const struct setup ddp = {"cpu:0-1", "ddp", NULL, NULL}, mp = {"cpu:0-1", "mp", NULL, NULL},
                              gpipe = {"cpu:0-1", "pipeline", NULL, "gpipe"},
                              alternating = {"cpu:0-1", "pipeline", NULL, "1f1b"};
    cvy_graph *g = make_graph(16);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_plan_knows_what_the_session_takes),
        cmocka_unit_test(test_the_limit_is_exact),
        cmocka_unit_test(test_ways_out_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
