/* Every strategy's schedules, run by the simulator on many meshes and numbers of shards. */
#include "strategy/simulator.h"

/* What a device may have in flight, and how many sums it takes, at most. */
struct limits {
    int32_t n_in_flight, n_sums;
};

/* Every shard went through, every bucket is updated once (or added to the update's total alone), by who updates;
   nothing is under way. */
static void check_end(const struct world *w, bool is_update) {
    bool is_dp = strcmp(w->c->strategy, "dp") == 0;
    for (int32_t k = 0; k < w->c->n_devices; k++) {
        const struct device *d = &w->device[k];
        bool updates = !is_dp || k == 0;
        assert_int_equal(d->n_checks, updates);
        for (int32_t i = 0; i < d->p->n_local_shards; i++)
            assert_int_equal(d->n_backward[i], w->c->n_buckets_of_stage);
        for (int32_t b = 0; b < w->c->input.n_buckets; b++) {
            bool is_here = updates && is_mine(w, d, b);
            assert_int_equal(d->is_updated[b], is_update && is_here);
            assert_int_equal(d->is_accumulated[b], w->c->is_accumulating && is_here);
        }
    }
    for (int32_t r = 0; r < CASE_MAX_DEVICES; r++) {
        for (int a = 0; a < MAX_STAGES * MAX_STAGES; a++)
            assert_int_equal(w->link[r][a / MAX_STAGES][a % MAX_STAGES].n, 0);
    }
}

/* The meetings of asynchronous devices leave nobody waiting for ever either. */
static void check_reduced_at_once(struct schedule_case *c) {
    static struct world world;
    world_open(&world, c);
    world.is_reduced_at_once = true;
    world_run(&world, offsetof(struct cvy_program, train), false);
    check_end(&world, true);
}

/* One step as the strategy runs it, one in split calls, and a batch that another one of its update follows. */
static void check_training(struct schedule_case *c, struct limits (*limits)(const struct cvy_program *)) {
    static struct world world; /* too large for the stack */
    schedule_case_make(c);
    world_open(&world, c);
    world_run(&world, offsetof(struct cvy_program, train), false);
    check_end(&world, true);
    for (int32_t k = 0; k < c->n_devices; k++) {
        const struct device *d = &world.device[k];
        struct limits most = limits(d->p);
        assert_int_equal(d->n_slots, d->p->n_slots);
        assert_int_equal(d->n_sums, d->p->n_sums);
        assert_true(d->most_in_flight <= most.n_in_flight && d->p->n_slots <= most.n_in_flight);
        assert_true(d->p->n_sums <= most.n_sums);
    }
    world_open(&world, c);
    world_run(&world, offsetof(struct cvy_program, forward), true);
    world_run(&world, offsetof(struct cvy_program, backward), true);
    world_run(&world, offsetof(struct cvy_program, update), true);
    check_end(&world, true);
    for (int32_t k = 0; k < c->n_devices; k++) {
        const struct device *d = &world.device[k];
        assert_int_equal(d->n_slots, d->p->n_slots_split);
        assert_int_equal(d->n_sums, d->p->n_sums_split);
    }
    check_reduced_at_once(c);
    world_open(&world, c);
    world_run(&world, offsetof(struct cvy_program, accumulate), false);
    if (c->is_accumulating)
        check_end(&world, false);
    schedule_case_free(c);
}

static void check_evaluation(const struct schedule_case *of) {
    static struct world world;
    struct schedule_case c = *of;
    c.n_buckets_of_stage = 0;
    schedule_case_make(&c);
    world_open(&world, &c);
    world_run(&world, offsetof(struct cvy_program, start), false);
    world_run(&world, offsetof(struct cvy_program, evaluate), false);
    for (int32_t k = 0; k < c.n_devices; k++) {
        for (int32_t i = 0; i < world.device[k].p->n_local_shards; i++)
            assert_true(world.device[k].has_forward[i]);
        assert_int_equal(world.device[k].p->n_slots, 1);
    }
    schedule_case_free(&c);
}

/* All numbers of shards that a mesh takes, up to 10, and some more; stages with one bucket and with several. */
static void check_many(struct schedule_case of, int32_t n_replicas,
                       struct limits (*limits)(const struct cvy_program *)) {
#ifdef CVY_TSAN /* one thread has no races, and takes its time */
    static const int32_t some[] = {1, 3, 8};
#else
    static const int32_t some[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 31, 64};
#endif
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        for (int variant = 0; variant < 8 && some[k] >= n_replicas; variant++) {
            struct schedule_case c = of;
            c.n_shards = some[k];
            c.has_skips = variant & 1;
            c.n_buckets_of_stage = variant & 2 ? 3 : 1;
            c.is_accumulating = (variant & 3) == 2;
            c.is_scaled = variant & 4;
            c.is_clipped = (variant ^ variant >> 1 ^ variant >> 2) & 1;
            check_evaluation(&c);
            check_training(&c, limits);
        }
    }
}

/* ---- the strategies ---------------------------------------------------------------------------------- */

/* Nodes on the stack of the tree that n shards at most make, with the one that is being computed. */
static int32_t stack_depth(int32_t n) {
    int32_t depth = 2;
    for (; n > 1; n /= 2)
        depth += 2; /* sizes rise, then fall, where the shards of a device begin at any number */
    return depth;
}

static struct limits one_in_flight(const struct cvy_program *p) {
    return (struct limits){1, stack_depth(p->n_local_shards)};
}

static struct limits as_1f1b(const struct cvy_program *p) {
    int32_t n = p->n_stages - p->stage;
    return (struct limits){n, n + stack_depth(p->n_local_shards)};
}

static struct limits as_gpipe(const struct cvy_program *p) {
    return (struct limits){p->n_local_shards, p->n_local_shards};
}

static void test_single(void **state) {
    (void)state;
    check_many((struct schedule_case){.strategy = "single", .n_devices = 1}, 1, one_in_flight);
}

static void test_data_parallel(void **state) {
    (void)state;
    for (int32_t n = 1; n <= 8; n++) {
        check_many((struct schedule_case){.strategy = "ddp", .n_devices = n}, n, one_in_flight);
        check_many((struct schedule_case){.strategy = "dp", .n_devices = n}, n, one_in_flight);
    }
    check_many((struct schedule_case){.strategy = "ddp", .n_devices = 64}, 64, one_in_flight);
}

/* Where rows are exchanged, every shard is in flight, and has a sum. */
static void test_in_layers(void **state) {
    (void)state;
    for (int32_t n = 1; n <= 4; n += n) {
        struct schedule_case c = {.strategy = "ddp", .n_devices = n, .is_in_layers = true};
        check_many(c, n, as_gpipe);
        c.strategy = "dp";
        check_many(c, n, as_gpipe);
    }
    check_many((struct schedule_case){.strategy = "single", .n_devices = 1, .is_in_layers = true}, 1,
               as_gpipe);
}

static void test_stages(void **state) {
    (void)state;
    for (int32_t n = 2; n <= MAX_STAGES; n++) {
        check_many((struct schedule_case){.strategy = "mp", .n_devices = n}, 1, one_in_flight);
        check_many((struct schedule_case){.strategy = "pipeline", .n_devices = n}, 1, as_1f1b);
        check_many((struct schedule_case){.strategy = "pipeline", .n_devices = n, .schedule = "gpipe"}, 1,
                   as_gpipe);
    }
}

static void test_hybrid(void **state) {
    (void)state;
    static const struct {
        const char *mesh;
        int32_t data, pipe;
    } meshes[] = {{"data=2,pipe=2", 2, 2}, {"data=4,pipe=2", 4, 2}, {"data=3,pipe=3", 3, 3},
                  {"data=2,pipe=5", 2, 5}, {"data=1,pipe=4", 1, 4}, {"data=3,pipe=1", 3, 1}};
    for (size_t k = 0; k < sizeof meshes / sizeof *meshes; k++) {
        struct schedule_case c = {
            .strategy = "hybrid", .mesh = meshes[k].mesh, .n_devices = meshes[k].data * meshes[k].pipe};
        check_many(c, meshes[k].data, as_1f1b);
        c.schedule = "gpipe";
        check_many(c, meshes[k].data, as_gpipe);
    }
}

/* 64 shards on one device: as many sums as the tree is high, and one; not 64. */
static void test_sums_are_freed(void **state) {
    (void)state;
    struct schedule_case c = {.strategy = "single", .n_devices = 1, .n_shards = 64, .n_buckets_of_stage = 1};
    schedule_case_make(&c);
    assert_int_equal(c.program[0]->n_sums, 7);
    assert_int_equal(c.program[0]->n_slots, 1);
    schedule_case_free(&c);
    struct schedule_case p = {
        .strategy = "pipeline", .n_devices = 4, .n_shards = 64, .n_buckets_of_stage = 1};
    schedule_case_make(&p);
    for (int32_t stage = 0; stage < 4; stage++) {
        assert_int_equal(p.program[stage]->n_slots, 4 - stage);
        assert_in_range(p.program[stage]->n_sums, 7, 7 + 3 - stage);
    }
    schedule_case_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single),    cmocka_unit_test(test_data_parallel),
        cmocka_unit_test(test_in_layers), cmocka_unit_test(test_stages),
        cmocka_unit_test(test_hybrid),    cmocka_unit_test(test_sums_are_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
