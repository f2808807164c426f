/* The average of the weights: torchvision's formula, of buffers too, in all strategies with the same bits; and it comes
   and goes without a trace in the training. */
#include "engine/ema.h"
#include "engine/session_matrix.h"

#include <math.h>

enum { N_UPDATES = 7, EVERY = 2, MAX_FLOATS = 4096 };
static const char *const names[] = {"b.weight", "fc.bias", "an.running_mean", "an.num_batches_tracked"};
enum { N_NAMES = sizeof names / sizeof *names };
static const double DECAY = 0.75;

static void read_one(cvy_session *session, const char *name, double *out) {
    static union {
        float f[MAX_FLOATS];
        int64_t i[1];
    } host;
    memset(&host, 0, sizeof host);
    assert_ok(cvy_session_read(session, name, &host));
    for (int k = 0; k < MAX_FLOATS; k++)
        out[k] = strstr(name, "tracked") ? (k ? 0 : (double)host.i[0]) : (double)host.f[k];
}

typedef double values[N_NAMES][MAX_FLOATS];

static void read_some(cvy_session *session, values out) {
    for (int i = 0; i < N_NAMES; i++)
        read_one(session, names[i], out[i]);
}

/* What torchvision's loop would have made of it. */
static void follow(values average, values now, int step, int n_warmup, int *n_averaged) {
    if (step % EVERY)
        return;
    for (int i = 0; i < N_NAMES; i++) {
        for (int k = 0; k < MAX_FLOATS; k++) {
            double next = *n_averaged ? DECAY * average[i][k] + (1 - DECAY) * now[i][k] : now[i][k];
            average[i][k] = strstr(names[i], "tracked") ? trunc(next) : next;
        }
    }
    *n_averaged = step < n_warmup ? 0 : *n_averaged + 1;
}

/* Hashes of the weights and of their average. */
static void train_with(const struct setup *setup, int n_warmup, uint64_t hash[2]) {
    static values want, now;
    const cvy_plan_options options = options_of(setup, "cpu", 1);
    struct run run = open_run(&options);
    struct cvy_ema ema = {.session = NULL};
    int n_averaged = 0;
    assert_ok(cvy_ema_open(&ema, run.session, EVERY, DECAY));
    for (int step = 0; step < N_UPDATES; step++) {
        struct data data;
        draw(&data, (uint64_t)step);
        bring_batch(run.session, batch_of(&data, BATCH), BATCH, setup->is_split, true);
        assert_ok(cvy_ema_step(&ema, step, step < n_warmup));
        read_some(run.session, now);
        follow(want, now, step, n_warmup, &n_averaged);
    }
    assert_int_equal(ema.n_averaged, n_averaged);
    assert_ok(cvy_weights_hash(run.session, &hash[0]));
    assert_ok(cvy_ema_swap(&ema));
    assert_ok(cvy_weights_hash(run.session, &hash[1]));
    read_some(run.session, now);
    for (int i = 0; i < N_NAMES; i++) {
        double error = 0;
        for (int k = 0; k < MAX_FLOATS; k++)
            error = fmax(error, fabs(now[i][k] - want[i][k]));
        if (!(error <= 1e-6))
            fail_msg("%s is off by %g", names[i], error);
    }
    assert_ok(cvy_ema_swap(&ema));
    assert_true(hash[0] != hash[1]);
    cvy_ema_free(&ema);
    assert_true(close_run(&run) == hash[0]);
}

static void test_average(void **state) {
    static const struct setup some[] = {
        {"cpu:0", "single", false, false, NULL, NULL},
        {"cpu:0-1", "ddp", true, false, NULL, NULL},
        {"cpu:0-1", "dp", false, false, NULL, NULL},
        {"cpu:0-3", "hybrid", false, false, "1f1b", "data=2,pipe=2"},
    };
    uint64_t want[2], got[2];
    (void)state;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        train_with(&some[i], 0, i ? got : want);
        if (i)
            assert_memory_equal(got, want, sizeof got);
    }
    train_with(&some[0], 3, got); /* the average begins later */
    assert_true(got[0] == want[0] && got[1] != want[1]);
}

/* While the average is in the session and out again, the training does not notice. */
static void test_swap_leaves_no_trace(void **state) {
    const cvy_plan_options options = options_of(&setups[0], "cpu", 1);
    uint64_t hash[2];
    (void)state;
    for (int with = 0; with < 2; with++) {
        struct run run = open_run(&options);
        struct cvy_ema ema = {.session = NULL};
        if (with)
            assert_ok(cvy_ema_open(&ema, run.session, 1, DECAY));
        for (int step = 0; step < 4; step++) {
            struct data data;
            float losses[BATCH];
            draw(&data, (uint64_t)step);
            cvy_batch batch = batch_of(&data, BATCH);
            assert_ok(cvy_step(run.session, &batch));
            assert_ok(cvy_ema_step(&ema, step, false));
            if (with)
                assert_ok(cvy_ema_swap(&ema));
            assert_ok(cvy_evaluate(run.session, &batch, losses, NULL, NULL));
            if (with)
                assert_ok(cvy_ema_swap(&ema));
        }
        cvy_ema_free(&ema);
        hash[with] = close_run(&run);
    }
    assert_true(hash[0] == hash[1]);
}

/* Numbers of torchvision's recipe for ResNet-50: 8 x 128 images, 600 epochs. */
static void test_decay(void **state) {
    (void)state;
    const struct cvy_ema_options recipe = {.steps = 32, .decay = 0.99998},
                                 coarse = {.steps = 32, .decay = 0.5};
    assert_true(fabs(cvy_ema_decay(&recipe, 1024, 600) - (1 - 2e-5 * 1024 * 32 / 600)) < 1e-12);
    assert_true(cvy_ema_decay(&coarse, 1024, 600) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_average),
        cmocka_unit_test(test_swap_leaves_no_trace),
        cmocka_unit_test(test_decay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
