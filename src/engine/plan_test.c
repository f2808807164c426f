/* Plans: what options default to; and parameters that get no gradient: they are named when the plan is made, nobody
   waits for them, they keep their values, and they lie in checkpoints. */
#include "engine/session.h"
#include "graph/safetensors.h"
#include "small_network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct heard {
    char warnings[2048];
};

static void hear(void *context, cvy_log_level level, const char *line) {
    struct heard *heard = context;
    size_t used = strlen(heard->warnings);
    if (level == CVY_LOG_WARNING && !strstr(line, "share")) /* devices may share cores here */
        snprintf(heard->warnings + used, sizeof heard->warnings - used, "%s\n", line);
}

static void defaults_are_as_documented(void **state) {
    (void)state;
    const cvy_plan_options options = {.batch_size = BATCH, .optimizer = "sgd"};
    cvy_graph *g = make_graph(4);
    cvy_plan *plan;
    assert_ok(cvy_plan_new(g, &options, &plan));
    assert_true(plan->options.timeout_s == 30);
    assert_true(plan->options.bucket_mb == 25 && plan->options.first_bucket_mb == 1);
    assert_string_equal(plan->options.devices, "cpu:0");
    assert_string_equal(plan->strategy->name, "single");
    assert_string_equal(plan->options.conv_algo, "auto");
    assert_int_equal(plan->options.shards, 1);
    cvy_plan_free(plan);
    cvy_graph_free(g);
}

/* ---- parameters without a gradient --------------------------------------------------------------------- */

/* Beside the network two more heads: `spare` is read by evaluation alone (its losses are not the loss's), `side`
   by training too, since its batch-norm keeps statistics. Neither has a part in the loss. And `lost` has no reader. */
static cvy_graph *make_branched_graph(void) {
    cvy_graph *g = open_graph();
    cvy_value labels = cvy_labels(g), x = cvy_input(g, "images", 1, SIDE, SIDE);
    x = cvy_conv2d(g, x, &(cvy_conv2d_args){.name = "conv", .out_channels = 8, .kernel = 3});
    x = cvy_relu(g, cvy_batch_norm(g, x, &(cvy_batch_norm_args){.name = "bn"}));
    cvy_value side = cvy_conv2d(g, x, &(cvy_conv2d_args){.name = "side", .out_channels = 4, .kernel = 3});
    cvy_batch_norm(g, side, &(cvy_batch_norm_args){.name = "side_bn"});
    cvy_value y =
        cvy_conv2d(g, x, &(cvy_conv2d_args){.name = "conv2", .out_channels = 8, .kernel = 3, .padding = 1});
    y = cvy_flatten(g, cvy_relu(g, y));
    cvy_linear(g, y, &(cvy_linear_args){.name = "lost", .out_features = 2});
    cvy_value logits = cvy_linear(g, y, &(cvy_linear_args){.name = "fc", .out_features = CLASSES});
    cvy_value spare = cvy_linear(g, y, &(cvy_linear_args){.name = "spare", .out_features = CLASSES});
    cvy_output(g, "loss", cvy_cross_entropy(g, logits, labels, 0));
    cvy_output(g, "logits", spare);
    assert_ok(cvy_graph_status(g));
    return g;
}

static const char *const idle_names[] = {"side.weight", "side.bias", "side_bn.weight", "side_bn.bias",
                                         "lost.weight", "lost.bias", "spare.weight",   "spare.bias"};
enum { N_IDLE = sizeof idle_names / sizeof *idle_names, MAX_FLOATS = 4096 };

struct setup {
    const char *devices, *strategy, *optimizer, *attributes;
};

static cvy_batch make_batch(void) {
    static float images[BATCH * SIDE * SIDE];
    static const int64_t labels[BATCH] = {0, 1, 2, 2, 1, 0};
    for (int i = 0; i < BATCH * SIDE * SIDE; i++)
        images[i] = (float)(i * 37 % 101) / 50 - 1;
    return (cvy_batch){.n = BATCH,
                       .channels = 1,
                       .height = SIDE,
                       .width = SIDE,
                       .dtype = CVY_F32,
                       .order = CVY_NCHW,
                       .images = images,
                       .labels = labels,
                       .std = {1}};
}

static void check_told(const cvy_plan *plan, const char *warnings) {
    char *text;
    if (!strstr(warnings,
                "8 parameters get no gradient: side.weight, side.bias, side_bn.weight, side_bn.bias, "
                "lost.weight, lost.bias, spare.weight, spare.bias; the loss does not depend on them, "
                "and they stay as they are\n"))
        fail_msg("told: '%s'", warnings);
    assert_ok(cvy_plan_explain(plan, NULL, &text));
    assert_non_null(strstr(text, "8 parameters: side.weight, side.bias,"));
    free(text);
}

static void check_saved(cvy_session *session, float before[N_IDLE][MAX_FLOATS]) {
    char path[] = "/tmp/convoy-plan-XXXXXX";
    struct cvy_safetensors *saved;
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_ok(cvy_save_weights(session, path));
    assert_ok(cvy_safetensors_open(path, &saved));
    for (int i = 0; i < N_IDLE; i++) {
        struct cvy_desc desc;
        const void *bytes;
        assert_ok(cvy_safetensors_find(saved, idle_names[i], &desc, &bytes));
        assert_memory_equal(bytes, before[i], cvy_desc_bytes(&desc));
    }
    cvy_safetensors_free(saved);
    assert_ok(cvy_load_weights(session, path));
    assert_ok(cvy_session_save_optimizer(session, path));
    assert_ok(cvy_session_load_optimizer(session, path, 3));
    unlink(path);
}

/* Trains three steps; the hash of the weights, and evaluation's logits, which come from the spare head. */
static uint64_t train(const struct setup *setup, float logits[BATCH * CLASSES]) {
    static float before[N_IDLE][MAX_FLOATS], weight[MAX_FLOATS], trained[MAX_FLOATS];
    struct heard heard = {""};
    cvy_graph *g = make_branched_graph();
    cvy_plan *plan;
    cvy_session *session;
    cvy_batch batch = make_batch();
    uint64_t hash = 0;
    cvy_plan_options options = good_options(setup->devices);
    options.strategy = setup->strategy;
    options.optimizer = setup->optimizer;
    options.optimizer_attributes = setup->attributes;
    options.timeout_s = 5; /* whoever waited for a gradient that never comes would be lost */
    options.log = (cvy_log_sink){hear, &heard};
    assert_ok(cvy_plan_new(g, &options, &plan));
    check_told(plan, heard.warnings);
    assert_ok(cvy_session_new(plan, &session));
    for (int i = 0; i < N_IDLE; i++)
        assert_ok(cvy_session_read(session, idle_names[i], before[i]));
    assert_ok(cvy_session_read(session, "fc.weight", weight));
    for (int step = 0; step < 3; step++)
        assert_ok(cvy_step(session, &batch));
    check_saved(session, before);
    assert_ok(cvy_session_read(session, "fc.weight", trained));
    assert_memory_not_equal(weight, trained, 8 * sizeof *weight);
    assert_ok(cvy_session_read(session, "side_bn.running_mean", trained));
    assert_true(trained[0] != 0); /* statistics do advance, as PyTorch's */
    assert_ok(cvy_evaluate(session, &batch, NULL, NULL, logits));
    assert_ok(cvy_weights_hash(session, &hash));
    cvy_session_free(session);
    cvy_plan_free(plan);
    cvy_graph_free(g);
    return hash;
}

static void idle_parameters_stay(void **state) {
    (void)state;
    static const char *const optimizers[][2] = {{"sgd", "momentum=0.9 weight_decay=0.1"},
                                                {"adamw", "weight_decay=0.1"},
                                                {"adam", "weight_decay=0.1"},
                                                {"rmsprop", "momentum=0.9 weight_decay=0.1"}};
    static const char *const others[][2] = {
        {"cpu:0-1", "dp"}, {"cpu:0-1", "ddp"}, {"cpu:0-1", "pipeline"}, {"cpu:0-2", "pipeline"}};
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++) {
        float logits[BATCH * CLASSES], want[BATCH * CLASSES];
        struct setup setup = {"cpu:0", "single", optimizers[o][0], optimizers[o][1]};
        uint64_t hash = train(&setup, want);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            setup.devices = others[i][0];
            setup.strategy = others[i][1];
            if (train(&setup, logits) != hash)
                fail_msg("%s on %s gives other weights", setup.strategy, setup.devices);
            assert_memory_equal(logits, want, sizeof want);
        }
    }
}

/* A graph without such parameters is not warned about, and one for inference neither. */
static void nothing_is_told_without_reason(void **state) {
    (void)state;
    struct heard heard = {""};
    cvy_graph *graphs[] = {make_graph(4), make_branched_graph()};
    for (int i = 0; i < 2; i++) {
        cvy_plan_options options = good_options("cpu:0");
        cvy_plan *plan;
        char *text;
        options.log = (cvy_log_sink){hear, &heard};
        options.optimizer = i ? NULL : "sgd";
        assert_ok(cvy_plan_new(graphs[i], &options, &plan));
        assert_string_equal(heard.warnings, "");
        assert_ok(cvy_plan_explain(plan, NULL, &text));
        assert_null(strstr(text, "no gradient"));
        free(text);
        cvy_plan_free(plan);
        cvy_graph_free(graphs[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_as_documented),
        cmocka_unit_test(idle_parameters_stay),
        cmocka_unit_test(nothing_is_told_without_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
