/* Whole networks through the whole engine, against PyTorch: tests/golden/models, made by
   tools/make_golden_models.py, which says what the files hold. On both backends, on the CPU with every
   convolution algorithm, and in shards with a batch-norm over all of them:
     logits       ||a - b|| <= 1e-4 ||b||
     gradients    ||a - b|| <= max(1e-4 ||b||, 3 x PyTorch's own float32 error) + 1e-6 ||g||, g = all of them
     20 steps     all weights together, and all running statistics together, within 1e-3 */
#include "golden_net.h"

enum { BATCH = 8 };

struct variant {
    const struct net *net;
    const char *backend, *conv_algo;
    const char *devices;
    int64_t shards; /* over which batch-norm normalises together, as PyTorch does over the whole batch */
};

/* Goes on from the split calls: their update is the first of the 20. */
static void train(const struct fixture *f) {
    assert_ok(cvy_update(f->session));
    for (int64_t step = 1; step < N_STEPS; step++) {
        cvy_batch batch = batch_at(f, step * BATCH % f->n_images, BATCH);
        assert_ok(cvy_step(f->session, &batch));
    }
}

static void test_variant(void **state) {
    const struct variant *variant = *state;
    struct fixture f = {.net = variant->net};
    open_golden(&f, f.net->name);
    open_session(&f, (cvy_plan_options){.devices = variant->devices,
                                        .backend = variant->backend,
                                        .conv_algo = variant->conv_algo,
                                        .batch_size = BATCH,
                                        .shards = variant->shards,
                                        .sync_bn = variant->shards > 1});
    check_logits(&f, BATCH);
    check_loss_and_gradients(&f, BATCH);
    train(&f);
    check_weights(&f);
    close_session(&f);
}

static struct variant variants[] = {
    {&LENET5, "reference", NULL, "cpu:0", 1},   {&LENET5, "cpu", "direct", "cpu:0", 1},
    {&LENET5, "cpu", "winograd", "cpu:0", 1},   {&LENET5, "cpu", "auto", "cpu:0", 1},
    {&RESNET18, "reference", NULL, "cpu:0", 1}, {&RESNET18, "cpu", "direct", "cpu:0", 1},
    {&RESNET18, "cpu", "winograd", "cpu:0", 1}, {&RESNET18, "cpu", "auto", "cpu:0", 1},
    {&RESNET18, "reference", NULL, "cpu:0", 3}, {&RESNET18, "cpu", "direct", "cpu:0-1", 4},
    {&RESNET18, "cpu", "auto", "cpu:0", 8},
};

int main(void) {
    enum { N = sizeof variants / sizeof *variants };
    struct CMUnitTest tests[N];
    char names[N][64];
    for (size_t i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "%s, %s %s, S=%d", variants[i].net->name, variants[i].backend,
                 variants[i].conv_algo ? variants[i].conv_algo : "", (int)variants[i].shards);
        tests[i] =
            (struct CMUnitTest){.name = names[i], .test_func = test_variant, .initial_state = &variants[i]};
    }
    return cmocka_run_group_tests_name("engine.golden", tests, NULL, NULL);
}
