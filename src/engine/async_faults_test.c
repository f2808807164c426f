/* What is wrong shows on the asynchronous test backend: every wait of every program is needed, and its absence is
   noticed; a device that fails or stands still ends the run in time, and is named. */
#include "base/thread.h"
#include "engine/session_waits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- every wait is needed -------------------------------------------------------------------------------- */

/* Takes each wait of one device's schedule out, alone. Returns how many there were. */
static int remove_waits(struct rig *rig, int device, int k) {
    cvy_schedule *schedule =
        (cvy_schedule *)((char *)rig->plan->team.workers[device].program + runs[k].offset);
    int n = 0;
    for (size_t i = 0; i < schedule->n; i++) {
        struct cvy_instr *instr = &schedule->data[i];
        const uint64_t waits = instr->wait_events;
        for (uint64_t left = waits; left; left &= left - 1, n++) {
            if (n % EVERY_WAIT != 0)
                continue;
            instr->wait_events = waits & ~(left & -left);
            cvy_status status = run_once(rig, runs[k].run);
            if (status != CVY_ERR_FAILED || !strstr(cvy_error(), "no event orders"))
                fail_msg("%s of %s, device %d: the wait of instruction %zu (%s) is not missed: %s",
                         runs[k].name, rig->plan->strategy->name, device, i, cvy_instr_name(instr->kind),
                         status == CVY_OK ? "all went well" : cvy_error());
        }
        instr->wait_events = waits;
    }
    return n;
}

static int remove_all_waits(const struct setup *setup, bool sync_bn) {
    struct rig rig;
    int n = 0;
    char last[400] = "";
    open_rig(&rig, setup, "async", 2, sync_bn, 20);
    for (int k = 0; k < N_RUNS; k++) {
        for (int device = 0; device < rig.plan->team.n; device++)
            n += remove_waits(&rig, device, k);
        if (n > 0)
            snprintf(last, sizeof last, "%s", cvy_error());
        assert_ok(run_once(&rig, runs[k].run)); /* and with all of them, nothing is wrong */
    }
    cvy_plan_free(rig.plan);
    print_message("%s %s %s%s: %d waits, each one missed; the last: %s\n", setup->devices, setup->strategy,
                  setup->schedule ? setup->schedule : "", sync_bn ? "sync_bn" : "", n, last);
    return n;
}

static void test_every_wait_is_needed(void **state) {
    (void)state;
    static const struct setup some[] = {
        {"cpu:0-1", "ddp", false, false, NULL, NULL},
        {"cpu:0-2", "ddp", false, false, NULL, NULL},
        {"cpu:0-1", "dp", false, false, NULL, NULL},
        {"cpu:0-1", "mp", false, false, NULL, NULL},
        {"cpu:0-1", "pipeline", false, false, "gpipe", NULL},
        {"cpu:0-2", "pipeline", false, false, "gpipe", NULL},
        {"cpu:0-1", "pipeline", false, false, "1f1b", NULL},
        {"cpu:0-2", "pipeline", false, false, "1f1b", NULL},
        {"cpu:0-3", "hybrid", false, false, "1f1b", "data=2,pipe=2"},
        {"cpu:0-3", "hybrid", false, false, "gpipe", "data=2,pipe=2"},
    };
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        assert_true(remove_all_waits(&some[k], false) > 0);
    }
}

static void test_every_wait_of_rows_is_needed(void **state) {
    (void)state;
    static const struct setup some[] = {
        {"cpu:0-1", "ddp", false, false, NULL, NULL},
        {"cpu:0-1", "dp", false, false, NULL, NULL},
    };
    for (size_t k = 0; k < sizeof some / sizeof *some; k++)
        assert_true(remove_all_waits(&some[k], true) > 0);
}

/* ---- faults ------------------------------------------------------------------------------------------------ */

static const struct setup four[] = {
    {"cpu:0-3", "ddp", false, false, NULL, NULL},
    {"cpu:0-3", "dp", false, false, NULL, NULL},
    {"cpu:0-3", "mp", false, false, NULL, NULL},
    {"cpu:0-3", "pipeline", false, false, "gpipe", NULL},
    {"cpu:0-3", "pipeline", false, false, "1f1b", NULL},
    {"cpu:0-3", "hybrid", false, false, "1f1b", "data=2,pipe=2"},
};
enum { N_FOUR = sizeof four / sizeof *four };

/* Trains up to step 4 with a fault ordered. */
static cvy_status train_with(const struct setup *setup, const char *variable, const char *fault,
                             double timeout_s) {
    struct rig rig;
    cvy_session *session;
    assert_int_equal(setenv(variable, fault, 1), 0);
    open_rig(&rig, setup, "async", 1, false, timeout_s);
    unsetenv(variable);
    assert_ok(cvy_session_new(rig.plan, &session));
    cvy_status status = CVY_OK;
    for (int step = 0; step < 5 && status == CVY_OK; step++) {
        status = cvy_step(session, &rig.batch);
        assert_true(status == CVY_OK || step == 3); /* not before it was ordered */
    }
    struct cvy_error error;
    cvy_error_save(&error, status);
    cvy_session_free(session);
    cvy_plan_free(rig.plan);
    return status == CVY_OK ? CVY_OK : cvy_error_restore(&error);
}

/* An error in one device of four ends the run at once, and is what the user sees. */
static void test_error_in_one_device(void **state) {
    (void)state;
    for (int k = 0; k < N_FOUR; k++) {
        int64_t start = cvy_now_ns();
        assert_fails(train_with(&four[k], "CVY_ASYNC_FAIL", "device=2,step=3,op=conv2d_backward_weights", 60),
                     CVY_ERR_FAILED, "async:2: step 3: conv2d_backward_weights of \"run B");
        assert_true((double)(cvy_now_ns() - start) * 1e-9 < 30);
    }
    assert_fails(train_with(&four[0], "CVY_ASYNC_FAIL", "device=1,step=3,op=reduce", 60), CVY_ERR_FAILED,
                 "async:1: step 3: reduce of \"reduce sum 0 bucket 0\" fails");
    assert_fails(train_with(&four[3], "CVY_ASYNC_FAIL", "device=1,step=3,op=recv", 60), CVY_ERR_FAILED,
                 "async:1: step 3: recv of \"recv F1 shard 0 slot 0\" fails");
}

/* One that stands still: lost within the timeout, and the line says which, when and at what. */
static void test_stall_in_one_device(void **state) {
    (void)state;
    static const char *const ops[] = {"conv2d", "reduce", "send"};
    for (int k = 0; k < N_FOUR; k++) {
        for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
            char fault[64];
            bool has_op = strcmp(ops[o], "reduce") == 0 ? strstr("ddp dp hybrid", four[k].strategy) != NULL
                          : strcmp(ops[o], "send") == 0
                              ? strstr("mp pipeline hybrid", four[k].strategy) != NULL
                              : true;
            if (!has_op)
                continue;
            snprintf(fault, sizeof fault, "device=2,step=3,op=%s", ops[o]);
            int64_t start = cvy_now_ns();
            cvy_status status = train_with(&four[k], "CVY_ASYNC_STALL", fault, 1);
            double took_s = (double)(cvy_now_ns() - start) * 1e-9;
            print_message("%s, %s: %.2f s: %s\n", four[k].strategy, ops[o], took_s, cvy_error());
            assert_int_equal(status, CVY_ERR_LOST);
            assert_non_null(strstr(cvy_error(), "step 3"));
            assert_non_null(strstr(cvy_error(), "async:2"));
            assert_true(took_s > 0.9 && took_s < 10);
        }
    }
}

/* Shorter than the timeout: only slow. */
static void test_short_stall(void **state) {
    (void)state;
    assert_ok(train_with(&four[0], "CVY_ASYNC_STALL", "device=2,step=3,op=conv2d,seconds=0.2", 20));
}

/* ---- a loss that is not finite ------------------------------------------------------------------------------- */

/* What is said about a batch with a NaN in shard 2; the step after it must go well. */
static void train_on_nan(const struct setup *setup, const char *backend, char message[512]) {
    cvy_graph *g = make_graph();
    cvy_plan *plan;
    cvy_session *session;
    struct data data;
    const cvy_plan_options options = options_of(setup, backend, 1);
    assert_ok(cvy_plan_new(g, &options, &plan));
    assert_ok(cvy_session_new(plan, &session));
    draw(&data, 0);
    cvy_batch batch = batch_of(&data, BATCH);
    assert_ok(cvy_step(session, &batch));
    float *pixel = &data.images[6 * CHANNELS * SIZE * SIZE], before = *pixel;
    *pixel = NAN;
    if (cvy_step(session, &batch) != CVY_ERR_NAN)
        fail_msg("%s %s on %s: %s", setup->strategy, setup->devices, backend, cvy_error());
    snprintf(message, 512, "%s", cvy_error());
    *pixel = before;
    assert_ok(cvy_step(session, &batch));
    cvy_session_free(session);
    cvy_plan_free(plan);
    cvy_graph_free(g);
}

/* Found, and explained, as on the CPU; nobody is left waiting for what a device had enqueued. */
static void test_nan(void **state) {
    (void)state;
    for (int k = 0; k < N_FOUR; k++) {
        char cpu[512], async[512];
        train_on_nan(&four[k], "cpu", cpu);
        train_on_nan(&four[k], "async", async);
        assert_string_equal(async, cpu);
        assert_non_null(strstr(cpu, "shard 2"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_wait_is_needed), cmocka_unit_test(test_every_wait_of_rows_is_needed),
        cmocka_unit_test(test_error_in_one_device),  cmocka_unit_test(test_stall_in_one_device),
        cmocka_unit_test(test_short_stall),          cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
