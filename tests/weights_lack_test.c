/* What files of weights may lack: auxiliary heads, and counts of batches; and what such heads add to the loss. */
#include "models/layers.h"
#include "small_network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static float images[BATCH * SIDE * SIDE];
static const int64_t labels[BATCH] = {0, 1, 2, 0, 1, 2};

/* A linear layer; with auxiliary heads of these weights on it. */
struct network {
    bool has_copy; /* the logits are looked at again, with weight 0.25 */
    bool has_head; /* a layer "aux", with weight 0.5 */
    bool no_bias;  /* of that */
};

static cvy_session *open_session(const struct network *what, const char *devices, cvy_plan **plan) {
    cvy_graph *g;
    cvy_session *session;
    assert_ok(cvy_graph_new(&g));
    cvy_value x = cvy_flatten(g, cvy_input(g, "images", 1, SIDE, SIDE));
    cvy_value logits = cvy_linear(g, x, &(cvy_linear_args){.name = "fc", .out_features = CLASSES});
    const size_t first = g->values.n;
    const cvy_linear_args aux = {.name = "aux", .out_features = CLASSES, .no_bias = what->no_bias};
    if (what->has_copy)
        cvy_auxiliary_head(g, first, logits, 0.25);
    if (what->has_head)
        cvy_auxiliary_head(g, first, cvy_linear(g, x, &aux), 0.5);
    cvy_output(g, "logits", logits);
    cvy_cross_entropy(g, logits, cvy_labels(g), 0.1);
    assert_ok(cvy_graph_status(g));
    cvy_plan_options options = good_options(devices);
    assert_ok(cvy_plan_new(g, &options, plan));
    cvy_graph_free(g);
    assert_ok(cvy_session_new(*plan, &session));
    return session;
}

static void close_both(cvy_session *session, cvy_plan *plan) {
    cvy_session_free(session);
    cvy_plan_free(plan);
}

static cvy_batch good_batch(void) {
    for (int i = 0; i < BATCH * SIDE * SIDE; i++)
        images[i] = sinf((float)i);
    return (cvy_batch){.n = BATCH,
                       .channels = 1,
                       .height = SIDE,
                       .width = SIDE,
                       .dtype = CVY_F32,
                       .images = images,
                       .labels = labels};
}

/* The loss of a step that begins with the weights of `file`, and the mean of what evaluation says. */
static void losses_of(const struct network *what, const char *file, double *training, double *evaluation) {
    cvy_plan *plan;
    cvy_session *session = open_session(what, "cpu:0-1", &plan);
    const cvy_batch batch = good_batch();
    float losses[BATCH];
    cvy_metrics metrics;
    assert_ok(cvy_load_weights(session, file));
    assert_ok(cvy_evaluate(session, &batch, losses, NULL, NULL));
    *evaluation = 0;
    for (int i = 0; i < BATCH; i++)
        *evaluation += losses[i] / (double)BATCH;
    assert_ok(cvy_step(session, &batch));
    cvy_session_metrics(session, &metrics);
    *training = metrics.loss;
    close_both(session, plan);
}

static void save(const struct network *what, const char *file) {
    cvy_plan *plan;
    cvy_session *session = open_session(what, "cpu:0", &plan);
    assert_ok(cvy_save_weights(session, file));
    close_both(session, plan);
}

static void the_loss_is_a_weighted_sum(void **state) {
    (void)state;
    double plain, evaluation, both;
    save(&(struct network){0}, "plain.safetensors");
    losses_of(&(struct network){0}, "plain.safetensors", &plain, &evaluation);
    assert_true(fabs(plain - evaluation) < 1e-5 * plain);
    losses_of(&(struct network){.has_copy = true}, "plain.safetensors", &both, &evaluation);
    assert_true(fabs(both - 1.25 * plain) < 1e-5 * plain);
    assert_true(fabs(plain - evaluation) < 1e-5 * plain);
    remove("plain.safetensors");
}

static void files_may_lack_them(void **state) {
    (void)state;
    const struct network plain = {0}, head = {.has_head = true}, part = {.has_head = true, .no_bias = true};
    double training, with, without;
    cvy_plan *plan;
    save(&plain, "plain.safetensors");
    save(&head, "head.safetensors");
    save(&part, "part.safetensors");
    losses_of(&plain, "plain.safetensors", &training, &without);
    losses_of(&head, "plain.safetensors", &training, &with);
    assert_true(with == without); /* evaluation leaves the head out */
    cvy_session *session = open_session(&head, "cpu:0-1", &plan);
    assert_ok(cvy_load_weights(session, "head.safetensors"));
    assert_fails(cvy_load_weights(session, "part.safetensors"), CVY_ERR_DATA, "no tensor 'aux.bias'");
    close_both(session, plan);
    session = open_session(&plain, "cpu:0", &plan);
    assert_fails(cvy_load_weights(session, "head.safetensors"), CVY_ERR_DATA, "this model lacks");
    close_both(session, plan);
    remove("plain.safetensors");
    remove("head.safetensors");
    remove("part.safetensors");
}

/* A file with all of small_network.h's tensors but bn.num_batches_tracked. */
static void save_uncounted(const char *file, bool has_variance) {
    cvy_graph *g = open_graph();
    cvy_plan *plan;
    cvy_session *session;
    const struct cvy_init one = {CVY_INIT_ONE, 0};
    cvy_value x = cvy_input(g, "images", 1, SIDE, SIDE);
    x = cvy_conv2d(g, x, &(cvy_conv2d_args){.name = "conv", .out_channels = 4, .kernel = 3});
    cvy_layer_parameter(g, "bn", "weight", CVY_SHAPE(4), one);
    cvy_layer_parameter(g, "bn", "bias", CVY_SHAPE(4), one);
    cvy_layer_parameter(g, "bn", "running_mean", CVY_SHAPE(4), one);
    cvy_layer_parameter(g, "bn", has_variance ? "running_var" : "variance", CVY_SHAPE(4), one);
    x = cvy_linear(g, cvy_flatten(g, x), &(cvy_linear_args){.name = "fc", .out_features = CLASSES});
    cvy_cross_entropy(g, x, cvy_labels(g), 0);
    cvy_plan_options options = good_options("cpu:0");
    assert_ok(cvy_plan_new(g, &options, &plan));
    cvy_graph_free(g);
    assert_ok(cvy_session_new(plan, &session));
    assert_ok(cvy_save_weights(session, file));
    close_both(session, plan);
}

static void files_may_lack_counts(void **state) {
    (void)state;
    cvy_graph *g = make_graph(4);
    cvy_plan_options options = good_options("cpu:0");
    cvy_plan *plan;
    cvy_session *session;
    assert_ok(cvy_plan_new(g, &options, &plan));
    cvy_graph_free(g);
    assert_ok(cvy_session_new(plan, &session));
    save_uncounted("uncounted.safetensors", true);
    assert_ok(cvy_load_weights(session, "uncounted.safetensors"));
    save_uncounted("uncounted.safetensors", false);
    assert_fails(cvy_load_weights(session, "uncounted.safetensors"), CVY_ERR_DATA,
                 "no tensor 'bn.running_var'");
    close_both(session, plan);
    remove("uncounted.safetensors");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_is_a_weighted_sum),
        cmocka_unit_test(files_may_lack_them),
        cmocka_unit_test(files_may_lack_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
