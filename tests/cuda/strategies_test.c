/* Training on 1 to 8 pretend GPUs: every strategy ends with the bits of one GPU that is given kernel by kernel, in any
   order that the events allow, whether the GPUs reach each other's memory or not. */
#include "cuda/cuda_orders.h"
#include "engine/session_groups.h"

static void test_same_bits_in_any_order(void **state) {
    (void)state;
    double loss;
    cvy_plan_options options = options_of(&setups[0], "cuda", 1);
    options.no_graphs = true;
    const uint64_t hash = train(&options, false, false, &loss);
    for (int order = 0; order < N_ORDERS; order++) {
        choose_order(order, order % 2 == 0);
        for (size_t i = 0; i < N_SETUPS; i++) {
            options = options_of(&setups[i], "cuda", 1);
            check_bits(&setups[i], &options, hash, loss);
        }
    }
    reset_order();
}

/* More and odd shards, updates of several batches, batch-norm over all shards. */
static void test_more_setups(void **state) {
    (void)state;
    uint64_t hashes[N_GROUPS] = {0};
    for (int k = 0; k < N_GROUPS; k++) {
        double loss;
        if (strcmp(groups[k].conv_algo, "direct") != 0) /* Winograd is the CPU's */
            continue;
        cvy_plan_options options = options_in(k, &groups[k].setups[0], "cuda");
        options.no_graphs = true;
        hashes[k] = train(&options, false, false, &loss);
        for (int other = 0; other < k; other++) /* else the group says nothing new */
            assert_true(hashes[k] != hashes[other]);
        for (int order = 0; order < N_ORDERS; order++) {
            choose_order(order, order % 2 == 0);
            for (const struct setup *setup = groups[k].setups; setup->devices; setup++) {
                options = options_in(k, setup, "cuda");
                check_bits(setup, &options, hashes[k], loss);
            }
        }
        reset_order();
    }
}

/* Several devices on one GPU, and on two. */
static void test_shared_gpus(void **state) {
    (void)state;
    static const struct setup shared[] = {
        {"cuda:0/0-1", "ddp", false, false, NULL, NULL},
        {"cuda:0/0-3", "dp", false, false, NULL, NULL},
        {"cuda:0/0-3", "pipeline", false, false, "1f1b", NULL},
        {"cuda:0/0-1,cuda:1/0-1", "hybrid", false, false, "gpipe", "data=2,pipe=2"},
    };
    double loss;
    cvy_plan_options options = options_of(&setups[0], "cuda", 1);
    const uint64_t hash = train(&options, false, false, &loss);
    for (int order = 0; order < N_ORDERS; order++) {
        choose_order(order, order % 2 == 0); /* else through the host: NCCL wants a GPU for each */
        for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
            options = options_of(&shared[i], NULL, 1);
            check_bits(&shared[i], &options, hash, loss);
        }
    }
    reset_order();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits_in_any_order),
        cmocka_unit_test(test_more_setups),
        cmocka_unit_test(test_shared_gpus),
    };
    return has_plugin() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
