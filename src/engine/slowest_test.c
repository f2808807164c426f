/* The device that waits least is the one that is waited for. */
#include "engine/session_matrix.h"
#include "engine/slowest.h"

static void the_least_wait(void **state) {
    (void)state;
    const struct setup setup = {"cpu:0-2", "ddp", false, false, NULL, NULL};
    cvy_plan_options options = options_of(&setup, "cpu", 1);
    struct run run = open_run(&options);
    struct cvy_slowest slowest;
    struct data data;
    draw(&data, 0);
    cvy_session_forget_waits(run.session);
    bring_batch(run.session, batch_of(&data, BATCH), BATCH, false, true);
    assert_ok(cvy_session_slowest(run.session, 0, &slowest));
    assert_true(slowest.most_s > 0 && slowest.most_s >= slowest.waited_s); /* talk takes some time */
    for (int i = 0; i < 3; i++)
        run.plan->team.workers[i].waited_ns = (int64_t[]){5, 2, 7}[i] * 1000000000;
    assert_ok(cvy_session_slowest(run.session, 1.5, &slowest));
    assert_int_equal(slowest.device, 1);
    assert_int_equal(slowest.rank, 0);
    assert_true(slowest.waited_s == 2 && slowest.most_s == 7 && slowest.loaded_s == 1.5);
    cvy_session_forget_waits(run.session);
    assert_ok(cvy_session_slowest(run.session, 0, &slowest));
    assert_true(slowest.device == 0 && slowest.most_s == 0);
    close_run(&run);
}

static void not_known(void **state) {
    (void)state;
    const struct setup all[] = {{"cpu:0", "single", false, false, NULL, NULL},
                                {"async:0-1", "ddp", false, false, NULL, NULL}};
    for (int i = 0; i < 2; i++) {
        cvy_plan_options options = options_of(&all[i], NULL, 1);
        struct run run = open_run(&options);
        struct cvy_slowest slowest;
        assert_ok(cvy_session_slowest(run.session, 0, &slowest));
        assert_int_equal(slowest.device, -1);
        close_run(&run);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_least_wait), cmocka_unit_test(not_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
