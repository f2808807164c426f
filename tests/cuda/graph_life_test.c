/* Graphs do not outlive what they were made of: memory that moves or is freed, programs that are replaced. The stand-in
   never gives an address again, and finds who launches a graph that touches what was freed. */
#include "cuda/cuda_orders.h"

enum { N_STEPS = 3 }; /* as it is, captured, launched again */

static void make_steps(cvy_session *session, bool is_split) {
    for (int i = 0; i < N_STEPS; i++) {
        struct data data;
        draw(&data, (uint64_t)i);
        bring_batch(session, batch_of(&data, BATCH), BATCH, is_split, true);
    }
}

static double evaluate(cvy_session *session) {
    struct data data;
    float losses[BATCH];
    double loss = 0;
    draw(&data, 0);
    cvy_batch batch = batch_of(&data, BATCH);
    assert_ok(cvy_evaluate(session, &batch, losses, NULL, NULL));
    for (int i = 0; i < BATCH; i++)
        loss += losses[i];
    return loss;
}

/* Steps, split calls, which want another arena, steps again, with evaluations between; then with another program. */
static uint64_t grow(bool no_graphs, double *loss) {
    cvy_plan_options options = options_of(&setups[0], "cuda", 1);
    options.no_graphs = no_graphs;
    struct run run = open_run(&options);
    const struct cvy_worker *worker = &run.plan->team.workers[0];
    make_steps(run.session, false);
    *loss = evaluate(run.session);
    const char *arena = worker->arena;
    make_steps(run.session, true);
    assert_true(worker->arena != arena);
    for (int i = 0; i < N_STEPS; i++)
        *loss += evaluate(run.session);
    make_steps(run.session, false);
    read_back_programs(run.session);
    make_steps(run.session, false);
    make_steps(run.session, true);
    *loss += evaluate(run.session);
    return close_run(&run);
}

static void test_memory_that_moves(void **state) {
    (void)state;
    double want_loss, loss;
    const uint64_t want = grow(true, &want_loss), hash = grow(false, &loss);
    assert_true(hash == want);
    assert_memory_equal(&loss, &want_loss, sizeof loss);
}

/* The devices are the plan's, and go on with the next session. */
static void test_sessions_that_end(void **state) {
    (void)state;
    cvy_plan_options options = options_of(&setups[0], "cuda", 1);
    struct run run = open_run(&options);
    uint64_t want = 0;
    for (int i = 0; i < 3; i++) {
        uint64_t hash;
        make_steps(run.session, false);
        assert_ok(cvy_weights_hash(run.session, &hash));
        assert_true(i == 0 || hash == want);
        want = hash;
        cvy_session_free(run.session);
        assert_ok(cvy_session_new(run.plan, &run.session));
        cvy_session_set_lr(run.session, 0.05);
    }
    close_run(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_that_moves),
        cmocka_unit_test(test_sessions_that_end),
    };
    return has_plugin() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
