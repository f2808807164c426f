/* Beside async_test.c, which has the setups of engine.session: those of session_groups.h. */
#include "engine/async_orders.h"
#include "engine/session_groups.h"

static void test_more_setups(void **state) {
    (void)state;
    uint64_t hashes[N_GROUPS];
    for (int k = 0; k < N_GROUPS; k++) {
        double loss;
        cvy_plan_options options = options_in(k, &groups[k].setups[0], "cpu");
        hashes[k] = train(&options, false, false, &loss);
        for (int other = 0; other < k; other++)
            assert_true(hashes[k] != hashes[other]); /* else the group says nothing new */
        for (int order = 0; order < N_ORDERS; order++) {
            seed(order);
            for (const struct setup *setup = groups[k].setups; setup->devices; setup++) {
                options = options_in(k, setup, "async");
                check_bits(setup, &options, hashes[k], loss);
            }
        }
    }
    unsetenv("CVY_ASYNC_SEED");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_setups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
