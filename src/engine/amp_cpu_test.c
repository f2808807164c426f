/* --amp bf16 on the CPU backend: the same bits in all strategies, for one thread and for two, and on the asynchronous
   backend; other bits than without it, losses that stay near. Skipped where the processor has no bfloat16. */
#include "engine/session_matrix.h"

#include <math.h>

static void need_bf16(void) {
    const char *reason = cvy_backend_find("cpu")->amp_refusal(CVY_BF16);
    if (!reason)
        return;
    print_message("skipped: %s\n", reason);
    skip();
}

static cvy_plan_options bf16_options(const struct setup *setup, const char *backend, int threads) {
    cvy_plan_options options = options_of(setup, backend, threads);
    options.accumulate = 2;
    options.amp = "bf16";
    return options;
}

static void same_bits(void **state) {
    const int threads = *(const int *)*state;
    need_bf16();
    cvy_plan_options options = bf16_options(&setups[0], "cpu", threads);
    double loss = 0, plain_loss = 0;
    uint64_t want = train(&options, false, false, &loss);
    options.amp = NULL;
    assert_true(train(&options, false, false, &plain_loss) != want);
    assert_true(isfinite(loss) && fabs(loss - plain_loss) < 0.02 * plain_loss);
    for (size_t i = 1; i < N_SETUPS; i++) {
        options = bf16_options(&setups[i], "cpu", threads);
        check_bits(&setups[i], &options, want, loss);
    }
}

static void same_bits_with_sync_bn(void **state) {
    double loss = 0;
    uint64_t want = 0;
    (void)state;
    need_bf16();
    for (size_t i = 0; i < N_SETUPS; i++) {
        const char *strategy = setups[i].strategy;
        cvy_plan_options options = bf16_options(&setups[i], "cpu", 1);
        options.sync_bn = true;
        if (i == 0)
            want = train(&options, false, false, &loss);
        else if (strcmp(strategy, "single") == 0 || strcmp(strategy, "ddp") == 0 ||
                 strcmp(strategy, "dp") == 0)
            check_bits(&setups[i], &options, want, loss);
    }
}

/* A backend that wraps it takes what it takes. */
static void same_bits_later(void **state) {
    double loss = 0;
    (void)state;
    need_bf16();
    cvy_plan_options options = bf16_options(&setups[0], "cpu", 1);
    uint64_t want = train(&options, false, false, &loss);
    const struct setup async[] = {{"async:0-1", "ddp", false, false, NULL, NULL},
                                  {"async:0-1", "pipeline", false, false, "1f1b", NULL}};
    for (size_t i = 0; i < sizeof async / sizeof *async; i++) {
        options = bf16_options(&async[i], "async", 1);
        check_bits(&async[i], &options, want, loss);
    }
}

/* float16 is refused wherever it runs, bfloat16 where the processor lacks it: in one line that says why. */
static void refused(void **state) {
    (void)state;
    cvy_graph *g = make_graph();
    cvy_plan *plan = NULL;
    cvy_plan_options options = bf16_options(&setups[0], "cpu", 1);
    options.amp = "fp16";
    assert_int_equal(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE);
    assert_non_null(strstr(cvy_error(), "backend cpu, --amp fp16: "));
    if (cvy_backend_find("cpu")->amp_refusal(CVY_BF16)) {
        options.amp = "bf16";
        assert_int_equal(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE);
        assert_non_null(strstr(cvy_error(), "this processor has no bfloat16 instructions"));
    }
    cvy_graph_free(g);
}

int main(void) {
    static int one = 1, two = 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(same_bits, &one),
        cmocka_unit_test_prestate(same_bits, &two),
        cmocka_unit_test(same_bits_with_sync_bn),
        cmocka_unit_test(same_bits_later),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests_name("engine.amp_cpu", tests, NULL, NULL);
}
