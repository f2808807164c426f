/* Schedules as text, and what the strategies refuse. That schedules are right when they run: simulate_test.c. */
#include "strategy/schedule_case.h"

#include "rt/program_text.h"

#include <string.h>

static void assert_text(const cvy_schedule *schedule, const char *want) {
    struct cvy_text text = {0};
    for (size_t k = 0; k < schedule->n; k++)
        cvy_instr_print(&schedule->data[k], &text);
    assert_int_equal(text.status, CVY_OK);
    assert_string_equal(text.data, want);
    cvy_text_free(&text);
}

/* The passes of a schedule in short, "F0 F1 B0 B1": phase and shard. */
static void assert_passes(const struct schedule_case *c, int device, const char *want) {
    struct cvy_text text = {0};
    const cvy_schedule *schedule = &c->program[device]->train;
    for (size_t k = 0; k < schedule->n; k++) {
        const struct cvy_instr *i = &schedule->data[k];
        if (i->kind == CVY_I_RUN)
            cvy_text_printf(&text, "%s%c%d", text.n ? " " : "", i->phase == CVY_PHASE_FORWARD ? 'F' : 'B',
                            i->shard);
    }
    assert_string_equal(text.data, want);
    cvy_text_free(&text);
}

static void test_single(void **state) {
    (void)state;
    struct schedule_case c = {.strategy = "single", .n_devices = 1, .n_shards = 2, .n_buckets_of_stage = 2};
    schedule_case_make(&c);
    assert_text(&c.program[0]->train, "  load shard 0 slot 0\n"
                                      "  run F0 shard 0 slot 0 sum 0\n"
                                      "  run B0.0 shard 0 slot 0 sum 0\n"
                                      "  run B0.1 shard 0 slot 0 sum 0\n"
                                      "  load shard 1 slot 0\n"
                                      "  run F0 shard 1 slot 0 sum 1\n"
                                      "  run B0.0 shard 1 slot 0 sum 1\n"
                                      "  add sum 0 from 1 bucket 0\n"
                                      "  run B0.1 shard 1 slot 0 sum 1\n"
                                      "  add sum 0 from 1 bucket 1\n"
                                      "  check\n"
                                      "  update sum 0 bucket 0\n"
                                      "  update sum 0 bucket 1\n");
    schedule_case_free(&c);
}

/* A bucket's all-reduce starts as soon as the last local shard gave its part; all are waited for in the end. */
static void test_ddp(void **state) {
    (void)state;
    struct schedule_case c = {.strategy = "ddp", .n_devices = 2, .n_shards = 2, .n_buckets_of_stage = 2};
    schedule_case_make(&c);
    assert_text(&c.program[1]->train, "  load shard 1 slot 0\n"
                                      "  run F0 shard 1 slot 0 sum 0\n"
                                      "  run B0.0 shard 1 slot 0 sum 0 record e0\n"
                                      "  reduce sum 0 bucket 0 wait e0 record e1 stream 1\n"
                                      "  run B0.1 shard 1 slot 0 sum 0 record e0\n"
                                      "  reduce sum 0 bucket 1 wait e0 record e2 stream 1\n"
                                      "  wait bucket 0 wait e1\n"
                                      "  check\n"
                                      "  update sum 0 bucket 0\n"
                                      "  wait bucket 1 wait e2\n"
                                      "  update sum 0 bucket 1\n");
    schedule_case_free(&c);
}

/* Only the master needs the sum of the gradients, and only it updates; the others get its parameters. */
static void test_dp(void **state) {
    (void)state;
    struct schedule_case c = {.strategy = "dp", .n_devices = 2, .n_shards = 2, .n_buckets_of_stage = 1};
    schedule_case_make(&c);
    assert_text(&c.program[0]->train, "  broadcast part 1 stream 1\n"
                                      "  load shard 0 slot 0\n"
                                      "  run F0 shard 0 slot 0 sum 0\n"
                                      "  run B0.0 shard 0 slot 0 sum 0 record e0\n"
                                      "  reduce sum 0 bucket 0 wait e0 record e1 stream 1\n"
                                      "  wait bucket 0 wait e1\n"
                                      "  check\n"
                                      "  update sum 0 bucket 0\n");
    assert_text(&c.program[1]->train, "  broadcast part 1 record e0 stream 1\n"
                                      "  refresh part 0 wait e0\n"
                                      "  load shard 1 slot 0\n"
                                      "  run F0 shard 1 slot 0 sum 0\n"
                                      "  run B0.0 shard 1 slot 0 sum 0 record e0\n"
                                      "  reduce bucket 0 wait e0 stream 1\n"
                                      "  wait bucket 0\n");
    schedule_case_free(&c);
}

/* Both shards run a part before any runs the next, and rows go round between them. */
static void test_in_layers(void **state) {
    (void)state;
    struct schedule_case c = {
        .strategy = "ddp", .n_devices = 2, .n_shards = 4, .n_buckets_of_stage = 1, .is_in_layers = true};
    schedule_case_make(&c);
    assert_text(&c.program[1]->train, "  load shard 2 slot 0\n"
                                      "  run F0 shard 2 slot 0 sum 0\n"
                                      "  load shard 3 slot 1\n"
                                      "  run F0 shard 3 slot 1 sum 1 record e0\n"
                                      "  exchange F0 wait e0 record e1 stream 1\n"
                                      "  run F0.1 shard 2 slot 0 sum 0 wait e1\n"
                                      "  run F0.1 shard 3 slot 1 sum 1 record e0\n"
                                      "  exchange F0.1 wait e0 record e1 stream 1\n"
                                      "  run F0.2 shard 2 slot 0 sum 0 wait e1\n"
                                      "  run F0.2 shard 3 slot 1 sum 1\n"
                                      "  run B0.0 shard 2 slot 0 sum 0 bucket 0\n"
                                      "  run B0.0 shard 3 slot 1 sum 1 bucket 0 record e0\n"
                                      "  exchange B0.0 wait e0 record e1 stream 1\n"
                                      "  run B0.1 shard 2 slot 0 sum 0 bucket 0 wait e1\n"
                                      "  run B0.1 shard 3 slot 1 sum 1 bucket 0\n"
                                      "  add sum 0 from 1 bucket 0 record e0\n"
                                      "  reduce sum 0 bucket 0 wait e0 record e1 stream 1\n"
                                      "  wait bucket 0 wait e1\n"
                                      "  check\n"
                                      "  update sum 0 bucket 0\n");
    schedule_case_free(&c);
}

/* The last stage, whose backward pass comes first, has the first bucket. */
static void test_pipeline(void **state) {
    (void)state;
    struct schedule_case c = {.strategy = "pipeline", .n_devices = 2, .n_shards = 2, .n_buckets_of_stage = 1};
    schedule_case_make(&c);
    assert_text(&c.program[0]->train, "  load shard 0 slot 0\n"
                                      "  run F0 shard 0 slot 0 sum 0 record e0\n"
                                      "  send F0.1 shard 0 slot 0 wait e0 stream 1\n"
                                      "  load shard 1 slot 1\n"
                                      "  run F0 shard 1 slot 1 sum 1 record e0\n"
                                      "  send F0.1 shard 1 slot 1 wait e0 stream 1\n"
                                      "  recv B0.1 shard 0 slot 0 record e0 stream 1\n"
                                      "  run B0.1 shard 0 slot 0 sum 0 wait e0\n"
                                      "  recv B0.1 shard 1 slot 1 record e0 stream 1\n"
                                      "  run B0.1 shard 1 slot 1 sum 1 wait e0\n"
                                      "  add sum 0 from 1 bucket 1\n"
                                      "  check\n"
                                      "  update sum 0 bucket 1\n");
    assert_text(&c.program[1]->train, "  recv F1 shard 0 slot 0 record e0 stream 1\n"
                                      "  load shard 0 slot 0 wait e0\n"
                                      "  run F1 shard 0 slot 0 sum 0\n"
                                      "  run B1.0 shard 0 slot 0 sum 0 record e0\n"
                                      "  send B1.0 shard 0 slot 0 wait e0 stream 1\n"
                                      "  recv F1 shard 1 slot 0 record e0 stream 1\n"
                                      "  load shard 1 slot 0 wait e0\n"
                                      "  run F1 shard 1 slot 0 sum 1\n"
                                      "  run B1.0 shard 1 slot 0 sum 1 record e0\n"
                                      "  add sum 0 from 1 bucket 0\n"
                                      "  send B1.0 shard 1 slot 0 wait e0 stream 1\n"
                                      "  check\n"
                                      "  update sum 0 bucket 0\n");
    schedule_case_free(&c);
}

/* ---- orders ---------------------------------------------------------------------------------------- */

static struct schedule_case pipeline(const char *schedule, int32_t n_devices, int32_t n_shards) {
    struct schedule_case c = {.strategy = "pipeline",
                              .schedule = schedule,
                              .n_devices = n_devices,
                              .n_shards = n_shards,
                              .n_buckets_of_stage = 1};
    schedule_case_make(&c);
    return c;
}

/* Stage s of P is P - 1 - s shards ahead, then alternates. */
static void test_1f1b(void **state) {
    (void)state;
    struct schedule_case c = pipeline("1f1b", 3, 5);
    assert_passes(&c, 0, "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
    assert_passes(&c, 1, "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4");
    assert_passes(&c, 2, "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
    schedule_case_free(&c);
}

static void test_gpipe(void **state) {
    (void)state;
    struct schedule_case c = pipeline("gpipe", 3, 4);
    for (int d = 0; d < 3; d++)
        assert_passes(&c, d, "F0 F1 F2 F3 B0 B1 B2 B3");
    schedule_case_free(&c);
}

static void test_fewer_shards_than_stages(void **state) {
    (void)state;
    struct schedule_case c = pipeline("1f1b", 4, 2);
    assert_passes(&c, 0, "F0 F1 B0 B1");
    assert_passes(&c, 1, "F0 F1 B0 B1");
    assert_passes(&c, 2, "F0 F1 B0 B1");
    assert_passes(&c, 3, "F0 B0 F1 B1");
    schedule_case_free(&c);
}

static void test_mp(void **state) {
    (void)state;
    struct schedule_case c = {.strategy = "mp", .n_devices = 3, .n_shards = 3, .n_buckets_of_stage = 1};
    schedule_case_make(&c);
    for (int d = 0; d < 3; d++)
        assert_passes(&c, d, "F0 B0 F1 B1 F2 B2");
    schedule_case_free(&c);
}

/* Each replica is a pipeline over its own shards. */
static void test_hybrid(void **state) {
    (void)state;
    struct schedule_case c = {.strategy = "hybrid",
                              .mesh = "pipe=2,data=2",
                              .n_devices = 4,
                              .n_shards = 6,
                              .n_buckets_of_stage = 1};
    schedule_case_make(&c);
    assert_passes(&c, 0, "F0 F1 B0 F2 B1 B2");
    assert_passes(&c, 1, "F0 B0 F1 B1 F2 B2");
    assert_passes(&c, 2, "F3 F4 B3 F5 B4 B5");
    assert_passes(&c, 3, "F3 B3 F4 B4 F5 B5");
    assert_int_equal(c.program[3]->replica, 1);
    assert_int_equal(c.program[3]->stage, 1);
    schedule_case_free(&c);
}

/* ---- refusals -------------------------------------------------------------------------------------- */

static cvy_status mesh_of(const char *strategy, int32_t n_devices, const char *asked) {
    struct cvy_mesh mesh;
    return cvy_strategy_find(strategy)->mesh(n_devices, asked, &mesh);
}

static void test_meshes(void **state) {
    (void)state;
    static const char *const without_mesh[] = {"single", "dp", "ddp", "mp", "pipeline"};
    for (size_t i = 0; i < sizeof without_mesh / sizeof *without_mesh; i++)
        assert_fails(mesh_of(without_mesh[i], 4, "data=2,pipe=2"), CVY_ERR_USAGE, "--strategy hybrid");
    assert_fails(mesh_of("single", 2, NULL), CVY_ERR_USAGE, "--strategy ddp");
    assert_fails(mesh_of("mp", 1, NULL), CVY_ERR_USAGE, "--strategy single");
    assert_fails(mesh_of("pipeline", 1, NULL), CVY_ERR_USAGE, "--strategy single");
    assert_fails(mesh_of("hybrid", 9, NULL), CVY_ERR_USAGE, "--mesh data=3,pipe=3");
    assert_fails(mesh_of("hybrid", 7, NULL), CVY_ERR_USAGE, "--mesh data=1,pipe=7");
    assert_fails(mesh_of("hybrid", 4, "data=2,pipe=3"), CVY_ERR_USAGE, "6 places for 4 devices");
    static const char *const unreadable[] = {
        "", "2x2", "data=2", "data=2,pipe=2,", "data=0,pipe=4", ",", "data=-2,pipe=-2", "data=2,data=2"};
    for (size_t i = 0; i < sizeof unreadable / sizeof *unreadable; i++)
        assert_fails(mesh_of("hybrid", 4, unreadable[i]), CVY_ERR_USAGE, "write data=D,pipe=P");
}

static void test_shards(void **state) {
    (void)state;
    static const char *const names[] = {"single", "dp", "ddp", "mp", "pipeline", "hybrid"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct cvy_strategy *strategy = cvy_strategy_find(names[i]);
        struct cvy_strategy_input input = {.mesh = {3, 2}, .n_shards = 2};
        assert_fails(strategy->check(&input), CVY_ERR_USAGE, "raise --shards to 3 or more");
        input.n_shards = 3;
        assert_ok(strategy->check(&input));
    }
    assert_null(cvy_strategy_find("dpp"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single),
        cmocka_unit_test(test_ddp),
        cmocka_unit_test(test_dp),
        cmocka_unit_test(test_in_layers),
        cmocka_unit_test(test_pipeline),
        cmocka_unit_test(test_1f1b),
        cmocka_unit_test(test_gpipe),
        cmocka_unit_test(test_mp),
        cmocka_unit_test(test_fewer_shards_than_stages),
        cmocka_unit_test(test_hybrid),
        cmocka_unit_test(test_meshes),
        cmocka_unit_test(test_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
