/* The promise: the number of devices, the strategy, split calls and programs read back from text never change
   the bits; a ragged batch and a batch smaller than S included. On both backends. */
#include "engine/session_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct setup {
    const char *devices, *strategy, *backend;
    int threads;
    bool is_split, from_text;
    const char *schedule, *mesh;
};

static void read_back_programs(cvy_session *session) {
    for (int d = 0; d < session->plan->team.n; d++) {
        struct cvy_text text = {0};
        assert_ok(cvy_program_print(session->plan->team.workers[d].program, session->plan->backend, &text));
        assert_ok(cvy_session_replace_program(session, d, text.data));
        cvy_text_free(&text);
    }
}

static void one_step(cvy_session *session, const cvy_batch *batch, bool is_split) {
    if (is_split) {
        assert_ok(cvy_forward(session, batch));
        assert_ok(cvy_backward(session));
        assert_ok(cvy_update(session));
    } else {
        assert_ok(cvy_step(session, batch));
    }
}

/* Five steps; sizes: full, ragged, fewer images than shards. The hash of the weights and evaluation's losses. */
static uint64_t train(const struct setup *setup, double *loss) {
    static const int64_t sizes[] = {BATCH, BATCH, 6, 3, BATCH};
    cvy_graph *g = make_graph();
    cvy_plan *plan;
    cvy_session *session;
    struct data data;
    float losses[BATCH];
    uint64_t hash = 0;
    cvy_plan_options options = {.devices = setup->devices,
                                .strategy = setup->strategy,
                                .schedule = setup->schedule,
                                .mesh = setup->mesh,
                                .backend = setup->backend,
                                .batch_size = BATCH,
                                .shards = SHARDS,
                                .threads_per_device = setup->threads,
                                .optimizer = "sgd",
                                .optimizer_attributes = "momentum=0.9 weight_decay=0.0005",
                                .seed = 3,
                                .first_bucket_mb = 0.002,
                                .bucket_mb = 0.004};
    assert_ok(cvy_plan_new(g, &options, &plan));
    assert_ok(cvy_session_new(plan, &session));
    for (size_t i = 0; setup->from_text && i < sizeof sizes / sizeof *sizes; i++)
        assert_ok(cvy_session_prepare(session, sizes[i], true, false));
    if (setup->from_text) {
        assert_ok(cvy_session_prepare(session, BATCH, false, false));
        read_back_programs(session);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        draw(&data, i);
        cvy_batch batch = batch_of(&data, sizes[i]);
        cvy_session_set_lr(session, 0.05);
        one_step(session, &batch, setup->is_split);
    }
    cvy_batch batch = batch_of(&data, BATCH);
    assert_ok(cvy_evaluate(session, &batch, losses, NULL, NULL));
    assert_ok(cvy_weights_hash(session, &hash));
    *loss = 0;
    for (int i = 0; i < BATCH; i++)
        *loss += losses[i];
    cvy_session_free(session);
    cvy_plan_free(plan);
    cvy_graph_free(g);
    return hash;
}

static void check_same_bits(const char *backend, int threads) {
    const struct setup setups[] = {
        {"cpu:0", "single", backend, threads, false, false, NULL, NULL},
        {"cpu:0", "single", backend, threads, false, false, NULL, NULL},
        {"cpu:0", "single", backend, threads, true, false, NULL, NULL},
        {"cpu:0", "single", backend, threads, false, true, NULL, NULL},
        {"cpu:0", "ddp", backend, threads, false, false, NULL, NULL},
        {"cpu:0-1", "ddp", backend, threads, false, false, NULL, NULL},
        {"cpu:0-1", "ddp", backend, threads, true, false, NULL, NULL},
        {"cpu:0-1", "ddp", backend, threads, false, true, NULL, NULL},
        {"cpu:0-2", "ddp", backend, threads, false, false, NULL, NULL},
        {"cpu:0-2", "ddp", backend, threads, true, false, NULL, NULL},
        {"cpu:0-3", "ddp", backend, threads, false, false, NULL, NULL},
        {"cpu:0", "dp", backend, threads, false, false, NULL, NULL},
        {"cpu:0-1", "dp", backend, threads, false, false, NULL, NULL},
        {"cpu:0-1", "dp", backend, threads, true, false, NULL, NULL},
        {"cpu:0-3", "dp", backend, threads, false, true, NULL, NULL},
        {"cpu:0-1", "mp", backend, threads, false, false, NULL, NULL},
        {"cpu:0-1", "mp", backend, threads, true, false, NULL, NULL},
        {"cpu:0-3", "mp", backend, threads, false, false, NULL, NULL},
        {"cpu:0-1", "pipeline", backend, threads, false, false, "gpipe", NULL},
        {"cpu:0-1", "pipeline", backend, threads, false, false, "1f1b", NULL},
        {"cpu:0-1", "pipeline", backend, threads, true, false, "gpipe", NULL},
        {"cpu:0-2", "pipeline", backend, threads, false, true, "1f1b", NULL},
        {"cpu:0-3", "pipeline", backend, threads, false, false, "1f1b", NULL},
        {"cpu:0-7", "pipeline", backend, threads, false, false, "gpipe", NULL},
        {"cpu:0-3", "hybrid", backend, threads, false, false, "1f1b", "data=2,pipe=2"},
        {"cpu:0-5", "hybrid", backend, threads, false, false, "gpipe", "data=2,pipe=3"},
        {"cpu:0-5", "hybrid", backend, threads, true, false, "gpipe", "data=3,pipe=2"},
    };
    double loss = 0, first_loss = 0;
    uint64_t first = train(&setups[0], &first_loss);
    for (size_t i = 1; i < sizeof setups / sizeof *setups; i++) {
        uint64_t hash = train(&setups[i], &loss);
        if (hash != first || memcmp(&loss, &first_loss, sizeof loss) != 0)
            fail_msg("%s %s %s%s%s: weights %016llx, loss %.9g; single: %016llx, %.9g", setups[i].devices,
                     setups[i].strategy, setups[i].schedule ? setups[i].schedule : "",
                     setups[i].is_split ? " split" : "", setups[i].from_text ? " from text" : "",
                     (unsigned long long)hash, loss, (unsigned long long)first, first_loss);
    }
}

static void same_bits_on_reference(void **state) {
    (void)state;
    check_same_bits("reference", 1);
}

static void same_bits_on_cpu(void **state) {
    (void)state;
    check_same_bits("cpu", 1);
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
