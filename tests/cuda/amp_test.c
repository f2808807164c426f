/* --amp on pretend GPUs: every strategy ends with the bits of one GPU, in any order that the events allow. */
#include "cuda/cuda_orders.h"
#include "engine/session_scaled.h"

#include <math.h>

static void same_bits(void **state) {
    cvy_plan_options options = options_of(&setups[0], "cuda", 1);
    double loss = 0, plain_loss = 0;
    const uint64_t plain = train(&options, false, false, &plain_loss);
    options.amp = *state;
    options.no_graphs = true;
    const uint64_t want = train(&options, false, false, &loss);
    assert_true(want != plain && isfinite(loss) && fabs(loss - plain_loss) < 0.02 * plain_loss);
    for (int order = 0; order < N_ORDERS; order++) {
        choose_order(order, order % 2 == 0);
        for (size_t i = 0; i < N_SETUPS; i++) {
            options = options_of(&setups[i], "cuda", 1);
            options.amp = *state;
            check_bits(&setups[i], &options, want, loss);
        }
    }
    reset_order();
}

/* With updates of two batches, and batch-norm over all shards. */
static void same_bits_with_sync_bn(void **state) {
    static const struct setup some[] = {
        {"cuda:0", "single", false, false, NULL, NULL}, {"cuda:0", "single", true, false, NULL, NULL},
        {"cuda:0-1", "ddp", false, true, NULL, NULL},   {"cuda:0-3", "ddp", false, false, NULL, NULL},
        {"cuda:0-1", "dp", true, false, NULL, NULL},    {"cuda:0/0-1", "ddp", false, false, NULL, NULL},
    };
    double loss = 0;
    uint64_t want = 0;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        cvy_plan_options options = options_of(&some[i], NULL, 1);
        options.amp = *state;
        options.accumulate = 2;
        options.sync_bn = true;
        if (i == 0)
            want = train(&options, false, false, &loss);
        else
            check_bits(&some[i], &options, want, loss);
    }
}

#ifdef CVY_SANITIZED /* slow: only where NCCL passes all on */
enum { FIRST_SCALED = 1 };
#else
enum { FIRST_SCALED = 0 };
#endif

static cvy_plan_options cuda_options(const struct setup *setup) {
    cvy_plan_options options = options_of(setup, "cuda", 1);
    options.accumulate = 2;
    options.no_graphs = setup == &setups[0];
    return options;
}

static void same_updates_are_skipped(void **state) {
    (void)state;
    for (int order = FIRST_SCALED; order < 2; order++) {
        choose_order(order, order % 2 == 0);
        check_scaled(cuda_options, setups, N_SETUPS);
    }
    reset_order();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(same_bits, "bf16"),
        cmocka_unit_test_prestate(same_bits_with_sync_bn, "bf16"),
#ifndef CVY_SANITIZED /* which see nothing in it that they have not seen in its neighbours */
        cmocka_unit_test_prestate(same_bits, "fp16"),
#endif
        cmocka_unit_test(same_updates_are_skipped),
    };
    return has_plugin() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
