/* --recompute makes the same bits in less memory: on any number of devices, in any strategy, over all shards or within
   each, in mixed precision, and with parameters that are not trained. */
#include "engine/plan.h"
#include "engine/session_matrix.h"

static const struct setup few[] = {
    {"cpu:0", "single", false, false, NULL, NULL},
    {"cpu:0", "single", true, true, NULL, NULL},
    {"cpu:0-1", "ddp", false, true, NULL, NULL},
    {"cpu:0-1", "dp", true, false, NULL, NULL},
    {"cpu:0-1", "pipeline", false, false, "1f1b", NULL},
    {"cpu:0-2", "pipeline", true, false, "gpipe", NULL},
    {"cpu:0-3", "hybrid", false, true, "1f1b", "data=2,pipe=2"},
};
enum { N_FEW = sizeof few / sizeof *few };

/* What `change` makes of the options, without recomputing on one device and with it in all setups. */
static void check_same_bits(const char *backend, void (*change)(cvy_plan_options *options), size_t n) {
    cvy_plan_options options = options_of(&few[0], backend, 1);
    double loss;
    change(&options);
    uint64_t hash = train(&options, false, false, &loss);
    for (size_t i = 0; i < n; i++) {
        options = options_of(&few[i], backend, 1);
        change(&options);
        options.recompute = true;
        check_bits(&few[i], &options, hash, loss);
    }
}

static void nothing(cvy_plan_options *options) { (void)options; }
static void sync_bn(cvy_plan_options *options) { options->sync_bn = true; }
static void freeze(cvy_plan_options *options) { options->freeze = "a.*,an.*"; }

static void test_same_bits(void **state) {
    (void)state;
    check_same_bits("cpu", nothing, N_FEW);
    check_same_bits("cpu", freeze, N_FEW);
    check_same_bits("cpu", sync_bn, 4); /* pipelines refuse it */
}

static void test_async_same_bits(void **state) {
    (void)state;
    static const struct setup setup = {"async:0-1", "ddp", false, false, NULL, NULL};
    double loss;
    cvy_plan_options options = options_of(&few[0], "cpu", 1);
    uint64_t hash = train(&options, false, false, &loss);
    options = options_of(&setup, NULL, 1);
    options.recompute = true;
    check_bits(&setup, &options, hash, loss);
}

enum { LAYERS = 8 };

/* Layers one after another: what each gives is kept for the next one's gradient, or made again. */
static cvy_graph *make_chain(void) {
    cvy_graph *g;
    char names[LAYERS][2][8];
    assert_ok(cvy_graph_new(&g));
    cvy_value x = cvy_input(g, "images", 16, 32, 32), labels = cvy_labels(g);
    for (int i = 0; i < LAYERS; i++) {
        snprintf(names[i][0], sizeof names[i][0], "conv%d", i);
        snprintf(names[i][1], sizeof names[i][1], "norm%d", i);
        x = cvy_conv2d(
            g, x, &(cvy_conv2d_args){.name = names[i][0], .out_channels = 16, .kernel = 1, .no_bias = true});
        x = cvy_relu(g, cvy_batch_norm(g, x, &(cvy_batch_norm_args){.name = names[i][1]}));
    }
    x = cvy_flatten(g, cvy_adaptive_avg_pool(g, x, 1, 1));
    x = cvy_linear(g, x, &(cvy_linear_args){.name = "fc", .out_features = 4});
    cvy_cross_entropy(g, x, labels, 0);
    assert_ok(cvy_graph_status(g));
    return g;
}

static size_t bytes_of_chain(bool recompute) {
    cvy_graph *g = make_chain();
    cvy_plan *plan;
    assert_ok(cvy_plan_new(g,
                           &(cvy_plan_options){.devices = "cpu:0",
                                               .backend = "reference",
                                               .batch_size = 16,
                                               .optimizer = "sgd",
                                               .recompute = recompute},
                           &plan));
    size_t n = cvy_plan_bytes(plan);
    cvy_plan_free(plan);
    cvy_graph_free(g);
    return n;
}

static void test_less_memory(void **state) {
    (void)state;
    size_t kept = bytes_of_chain(false), made_again = bytes_of_chain(true);
    size_t activation = (size_t)16 * 16 * 32 * 32 * sizeof(float);
    /* kept: what the convolutions give, what the batch-norms give but for the last (the mean's gradient does not ask
       for it), the relus' masks of a byte a value. Of the batch-norms' two are alive at a time when made again. */
    assert_true(kept >= (2 * LAYERS - 1) * activation + LAYERS * activation / 4);
    assert_true(made_again <= kept - (LAYERS - 1 - 2) * activation);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_async_same_bits),
        cmocka_unit_test(test_less_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
