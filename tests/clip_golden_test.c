/* --clip-grad-norm against torch.nn.utils.clip_grad_norm_: tests/golden/models/lenet5.clip, made by
   tools/make_golden_clip.py. The norm of each of 20 steps of SGD within 1e-4, the weights after them within 1e-3. */
#include "golden_net.h"

enum { BATCH = 8 };

static void train(const char *backend, const char *strategy, const char *devices) {
    struct fixture f = {.net = &LENET5};
    cvy_metrics metrics;
    open_golden(&f, "lenet5.clip");
    double *norms = copy_bytes(&f, "norms", CVY_F64), worst = 0;
    open_session(&f, (cvy_plan_options){.backend = backend,
                                        .strategy = strategy,
                                        .devices = devices,
                                        .batch_size = BATCH,
                                        .clip_grad_norm = scalar(&f, "", "max_norm")});
    for (int64_t step = 0; step < N_STEPS; step++) {
        cvy_batch batch = batch_at(&f, step * BATCH % f.n_images, BATCH);
        assert_ok(cvy_step(f.session, &batch));
        cvy_session_metrics(f.session, &metrics);
        worst = fmax(worst, fabs(metrics.grad_norm - norms[step]) / norms[step]);
    }
    print_message("  norms: %.1e of 1e-04\n", worst);
    assert_true(worst <= 1e-4);
    check_weights(&f);
    free(norms);
    close_session(&f);
}

static void test_reference(void **state) {
    (void)state;
    train("reference", "single", "cpu:0");
}

static void test_cpu(void **state) {
    (void)state;
    train("cpu", "single", "cpu:0");
}

static void test_pipeline(void **state) {
    (void)state;
    train("cpu", "pipeline", "cpu:0-2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_pipeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
