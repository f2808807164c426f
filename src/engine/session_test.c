/* The promise: the number of devices, the strategy, split calls and programs read back from text never change
   the bits; a ragged batch and a batch smaller than S included. On both backends. */
#include "engine/session_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void same_bits_on(const char *backend) {
    double loss;
    cvy_plan_options options = options_of(&setups[0], backend, 1);
    uint64_t hash = train(&options, false, false, &loss);
    for (size_t i = 0; i < N_SETUPS; i++) {
        options = options_of(&setups[i], backend, 1);
        check_bits(&setups[i], &options, hash, loss);
    }
}

static void same_bits_on_reference(void **state) {
    (void)state;
    same_bits_on("reference");
}

static void same_bits_on_cpu(void **state) {
    (void)state;
    same_bits_on("cpu");
}

/* All gradients of one step, one after the other. */
static size_t gradients_of(const char *backend, float *out) {
    cvy_graph *g = make_graph();
    cvy_plan *plan;
    cvy_session *session;
    struct data data;
    size_t n = 0;
    cvy_plan_options options = {.devices = "cpu:0",
                                .backend = backend,
                                .batch_size = BATCH,
                                .shards = SHARDS,
                                .threads_per_device = 1,
                                .optimizer = "sgd",
                                .seed = 3};
    assert_ok(cvy_plan_new(g, &options, &plan));
    assert_ok(cvy_session_new(plan, &session));
    draw(&data, 0);
    cvy_batch batch = batch_of(&data, BATCH);
    assert_ok(cvy_forward(session, &batch));
    assert_ok(cvy_backward(session));
    for (size_t i = 0; i < plan->train->reducibles.n; i++) {
        const struct cvy_reducible *r = &plan->train->reducibles.data[i];
        if (r->kind == CVY_REDUCE_GRADIENT) {
            const struct cvy_value_info *param = cvy_graph_value(plan->train, r->target);
            assert_ok(cvy_session_gradient(session, param->name, out + n));
            n += (size_t)cvy_shape_count(&param->desc.shape);
        }
    }
    cvy_session_free(session);
    cvy_plan_free(plan);
    cvy_graph_free(g);
    return n;
}

static void backends_agree(void **state) {
    (void)state;
    static float reference[1 << 14], cpu[1 << 14];
    double difference = 0, norm = 0;
    size_t n = gradients_of("reference", reference);
    assert_int_equal(gradients_of("cpu", cpu), n);
    for (size_t i = 0; i < n; i++) {
        difference += (cpu[i] - reference[i]) * (cpu[i] - reference[i]);
        norm += reference[i] * reference[i];
    }
    print_message("%zu gradients, relative difference %.2g\n", n, sqrt(difference / norm));
    assert_true(norm > 0 && sqrt(difference / norm) < 1e-5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_on_reference),
        cmocka_unit_test(same_bits_on_cpu),
        cmocka_unit_test(backends_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
