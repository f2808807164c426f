/* Training on the asynchronous test backend: the bits of the CPU, in any order that the events allow. More setups:
   async_more_test.c. */
#include "engine/async_orders.h"

static void test_same_bits_in_any_order(void **state) {
    (void)state;
    double loss;
    cvy_plan_options options = options_of(&setups[0], "cpu", 1);
    uint64_t hash = train(&options, false, false, &loss);
    for (int order = 0; order < N_ORDERS; order++) {
        seed(order);
        for (size_t i = 0; i < N_SETUPS; i++) {
            options = options_of(&setups[i], "async", 1);
            check_bits(&setups[i], &options, hash, loss);
        }
    }
    unsetenv("CVY_ASYNC_SEED");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
