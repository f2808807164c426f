/* Sessions, misused through convoy.h: every mistake gives its own code and one clear line, changes nothing, and
   leaves the session fit for the next call. Plans and data: see api_plan_test.c. */
#include "small_network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct run {
    cvy_plan *plan;
    cvy_session *session;
};

static struct run open_run(const cvy_graph *g, const char *devices) {
    struct run run;
    cvy_plan_options options = good_options(devices);
    assert_ok(cvy_plan_new(g, &options, &run.plan));
    assert_ok(cvy_session_new(run.plan, &run.session));
    return run;
}

static struct run open_network(const char *devices) {
    cvy_graph *g = make_graph(4);
    struct run run = open_run(g, devices);
    cvy_graph_free(g); /* the plan has a copy */
    return run;
}

static void close_run(struct run *run) {
    cvy_session_free(run->session);
    cvy_plan_free(run->plan);
}

static float images[BATCH * SIDE * SIDE];
static const int64_t labels[BATCH] = {0, 1, 2, 0, 1, 2};

static int fill_images(void **state) {
    (void)state;
    for (int i = 0; i < BATCH * SIDE * SIDE; i++)
        images[i] = sinf((float)i);
    return 0;
}

static cvy_batch good_batch(void) {
    return (cvy_batch){.n = BATCH,
                       .channels = 1,
                       .height = SIDE,
                       .width = SIDE,
                       .dtype = CVY_F32,
                       .images = images,
                       .labels = labels};
}

static uint64_t hash_of(cvy_session *session) {
    uint64_t hash;
    assert_ok(cvy_weights_hash(session, &hash));
    return hash;
}

/* ---- sessions --------------------------------------------------------------------------------------- */

static void one_session_at_a_time(void **state) {
    (void)state;
    struct run run = open_network("cpu:0-1");
    cvy_session *second = NULL;
    cvy_batch batch = good_batch();
    uint64_t first = hash_of(run.session);
    assert_fails(cvy_session_new(run.plan, &second), CVY_ERR_USAGE, "has a session already");
    assert_null(second);
    assert_ok(cvy_step(run.session, &batch));
    assert_int_not_equal(hash_of(run.session), first);
    cvy_session_free(run.session);
    assert_ok(cvy_session_new(run.plan, &run.session)); /* a fresh start */
    assert_int_equal(hash_of(run.session), first);
    close_run(&run);
}

static void null_is_freed(void **state) {
    (void)state;
    cvy_session_free(NULL);
    cvy_plan_free(NULL);
    cvy_graph_free(NULL);
    cvy_loader_free(NULL);
    cvy_dataset_free(NULL);
}

/* Every call fails with the text; the weights stay, and a good batch still works. */
static void refuse_batch(struct run *run, const cvy_batch *batch, cvy_status code, const char *text) {
    cvy_batch good = good_batch();
    uint64_t before = hash_of(run->session);
    assert_fails(cvy_step(run->session, batch), code, text);
    assert_fails(cvy_forward(run->session, batch), code, text);
    float losses[BATCH];
    assert_fails(cvy_evaluate(run->session, batch, losses, NULL, NULL), code, text);
    assert_int_equal(hash_of(run->session), before);
    assert_ok(cvy_step(run->session, &good));
    assert_int_not_equal(hash_of(run->session), before);
}

static void batches_are_checked(void **state) {
    (void)state;
    static const int64_t high[BATCH] = {0, 0, 0, CLASSES, 0, 0}, low[BATCH] = {-1};
    struct run run = open_network("cpu:0-1");
    cvy_batch b = good_batch();
    b.images = NULL;
    refuse_batch(&run, &b, CVY_ERR_USAGE, "no images");
    b = good_batch();
    b.labels = NULL;
    refuse_batch(&run, &b, CVY_ERR_USAGE, "no labels");
    b = good_batch();
    b.labels = high;
    refuse_batch(&run, &b, CVY_ERR_DATA, "image 3 of the batch has the label 3, outside of 0 to 2");
    b.labels = low;
    refuse_batch(&run, &b, CVY_ERR_DATA, "label -1");
    b = good_batch();
    b.width = SIDE - 1;
    refuse_batch(&run, &b, CVY_ERR_USAGE, "images of 1x8x7, this model takes 1x8x8");
    b = good_batch();
    b.n = BATCH + 1;
    refuse_batch(&run, &b, CVY_ERR_USAGE, "7 images");
    b.n = 0;
    refuse_batch(&run, &b, CVY_ERR_USAGE, "0 images");
    b = good_batch();
    b.dtype = CVY_F64;
    refuse_batch(&run, &b, CVY_ERR_USAGE, "CVY_U8 or CVY_F32");
    b = good_batch();
    b.order = (cvy_image_order)7;
    refuse_batch(&run, &b, CVY_ERR_USAGE, "CVY_NHWC");
    b = good_batch();
    b.mean[0] = NAN;
    refuse_batch(&run, &b, CVY_ERR_USAGE, "mean nan");
    b = good_batch();
    b.std[0] = -1;
    refuse_batch(&run, &b, CVY_ERR_USAGE, "std -1");
    close_run(&run);
}

static void std_is_1_unless_given(void **state) {
    (void)state;
    struct run run = open_network("cpu:0");
    float without[BATCH * CLASSES], with[BATCH * CLASSES], halved[BATCH * CLASSES];
    cvy_batch batch = good_batch();
    assert_ok(cvy_evaluate(run.session, &batch, NULL, NULL, without));
    batch.std[0] = 1;
    assert_ok(cvy_evaluate(run.session, &batch, NULL, NULL, with));
    batch.std[0] = 2;
    assert_ok(cvy_evaluate(run.session, &batch, NULL, NULL, halved));
    assert_memory_equal(with, without, sizeof with);
    assert_memory_not_equal(with, halved, sizeof with);
    close_run(&run);
}

static void split_calls_have_an_order(void **state) {
    (void)state;
    struct run run = open_network("cpu:0-1");
    cvy_batch batch = good_batch(), wrong = good_batch();
    float logits[BATCH * CLASSES];
    wrong.height++;
    uint64_t before = hash_of(run.session);
    assert_fails(cvy_backward(run.session), CVY_ERR_USAGE, "cvy_forward");
    assert_fails(cvy_update(run.session), CVY_ERR_USAGE, "cvy_backward");
    assert_ok(cvy_forward(run.session, &batch));
    assert_fails(cvy_update(run.session), CVY_ERR_USAGE, "cvy_backward");
    /* an evaluation takes the memory that the backward pass would read */
    assert_ok(cvy_evaluate(run.session, &batch, NULL, NULL, logits));
    assert_fails(cvy_backward(run.session), CVY_ERR_USAGE, "cvy_forward");
    assert_ok(cvy_forward(run.session, &batch));
    assert_ok(cvy_backward(run.session));
    assert_fails(cvy_backward(run.session), CVY_ERR_USAGE, "cvy_forward");
    assert_int_equal(hash_of(run.session), before);
    /* a batch that is refused takes nothing away */
    assert_fails(cvy_forward(run.session, &wrong), CVY_ERR_USAGE, "1x9x8");
    cvy_session_set_lr(run.session, NAN);
    assert_fails(cvy_update(run.session), CVY_ERR_USAGE, "learning rate is nan");
    assert_fails(cvy_step(run.session, &batch), CVY_ERR_USAGE, "learning rate is nan");
    cvy_session_set_lr(run.session, 0.1);
    assert_ok(cvy_update(run.session));
    assert_int_not_equal(hash_of(run.session), before);
    assert_fails(cvy_update(run.session), CVY_ERR_USAGE, "cvy_backward");
    close_run(&run);
}

static void results_need_outputs(void **state) {
    (void)state;
    cvy_graph *g = open_graph();
    cvy_output(g, "loss", cvy_batch_mean(g, cvy_mean(g, add_network(g, 4))));
    struct run run = open_run(g, "cpu:0-1");
    cvy_graph_free(g);
    cvy_batch batch = good_batch();
    float floats[BATCH * CLASSES];
    int32_t ranks[BATCH];
    batch.labels = NULL; /* this loss needs none */
    assert_ok(cvy_step(run.session, &batch));
    assert_fails(cvy_evaluate(run.session, &batch, NULL, NULL, floats), CVY_ERR_USAGE, "\"logits\"");
    assert_fails(cvy_evaluate(run.session, &batch, floats, NULL, NULL), CVY_ERR_USAGE, "\"losses\"");
    assert_fails(cvy_evaluate(run.session, &batch, NULL, ranks, NULL), CVY_ERR_USAGE, "\"ranks\"");
    assert_ok(cvy_evaluate(run.session, &batch, NULL, NULL, NULL));
    assert_ok(cvy_step(run.session, &batch));
    close_run(&run);
}

static void inference_does_not_train(void **state) {
    (void)state;
    cvy_graph *g = make_graph(4);
    cvy_plan_options options = good_options("cpu:0");
    struct run run;
    float logits[BATCH * CLASSES];
    cvy_batch batch = good_batch();
    options.optimizer = NULL;
    assert_ok(cvy_plan_new(g, &options, &run.plan));
    assert_ok(cvy_session_new(run.plan, &run.session));
    assert_fails(cvy_step(run.session, &batch), CVY_ERR_USAGE, "optimizer");
    assert_fails(cvy_forward(run.session, &batch), CVY_ERR_USAGE, "optimizer");
    batch.labels = NULL;
    assert_ok(cvy_evaluate(run.session, &batch, NULL, NULL, logits));
    close_run(&run);
    cvy_graph_free(g);
}

/* ---- numbers that are not finite -------------------------------------------------------------------- */

static void bad_numbers_are_traced(void **state) {
    (void)state;
    static const char *const devices[] = {"cpu:0", "cpu:0-1"};
    for (int d = 0; d < 2; d++) {
        struct run run = open_network(devices[d]);
        cvy_batch batch = good_batch();
        images[SIDE * SIDE * (BATCH - 1)] = NAN; /* in the last image: of shard 1 */
        uint64_t before = hash_of(run.session);
        assert_fails(cvy_step(run.session, &batch), CVY_ERR_NAN, "\"images\" of shard 1");
        assert_int_equal(hash_of(run.session), before); /* nothing was updated */
        fill_images(NULL);
        cvy_session_free(run.session); /* the plan is good for another */
        assert_ok(cvy_session_new(run.plan, &run.session));
        assert_int_equal(hash_of(run.session), before);
        assert_ok(cvy_step(run.session, &batch));
        close_run(&run);

        cvy_graph *g = open_graph(); /* two layers without bound: their product grows as the rate allows */
        cvy_value x = cvy_input(g, "images", 1, SIDE, SIDE);
        x = cvy_conv2d(g, x, &(cvy_conv2d_args){.name = "conv", .out_channels = 2, .kernel = 3});
        x = cvy_linear(g, x, &(cvy_linear_args){.name = "fc", .out_features = 2});
        cvy_output(g, "loss", cvy_batch_mean(g, cvy_mean(g, x)));
        run = open_run(g, devices[d]);
        cvy_graph_free(g);
        cvy_session_set_lr(run.session, 1e30);
        cvy_status status = CVY_OK;
        for (int step = 0; step < 10 && status == CVY_OK; step++)
            status = cvy_step(run.session, &batch);
        assert_int_equal(status, CVY_ERR_NAN);
        assert_non_null(strstr(cvy_error(), "of layer fc"));
        assert_non_null(strstr(cvy_error(), "lower"));
        close_run(&run);
    }
}

/* ---- weights ---------------------------------------------------------------------------------------- */

static void save(cvy_graph *g, const char *path) {
    struct run run = open_run(g, "cpu:0");
    assert_ok(cvy_save_weights(run.session, path));
    close_run(&run);
    cvy_graph_free(g);
}

static void weights_are_checked(void **state) {
    (void)state;
    char folder[] = "/tmp/convoy-api-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/w.safetensors", folder);
    struct run run = open_network("cpu:0-1");
    uint64_t before = hash_of(run.session);

    assert_fails(cvy_load_weights(run.session, path), CVY_ERR_DATA, path);
    save(make_graph(5), path);
    assert_fails(cvy_load_weights(run.session, path), CVY_ERR_DATA, "this model needs f32[4");

    cvy_graph *g = open_graph();
    cvy_value x = cvy_conv2d(g, cvy_input(g, "images", 1, SIDE, SIDE),
                             &(cvy_conv2d_args){.name = "conv", .out_channels = 4, .kernel = 3});
    cvy_output(g, "loss", cvy_batch_mean(g, cvy_mean(g, x)));
    save(g, path);
    assert_fails(cvy_load_weights(run.session, path), CVY_ERR_DATA, "has no tensor 'bn.weight'");

    g = open_graph();
    x = add_network(g, 4);
    x = cvy_linear(g, x, &(cvy_linear_args){.name = "extra", .out_features = 2});
    cvy_output(g, "loss", cvy_batch_mean(g, cvy_mean(g, x)));
    save(g, path);
    assert_fails(cvy_load_weights(run.session, path), CVY_ERR_DATA, "'extra.bias' that this model lacks");

    assert_int_equal(hash_of(run.session), before); /* nothing was taken from any of them */
    assert_fails(cvy_save_weights(run.session, "/nowhere/w.safetensors"), CVY_ERR_IO, "/nowhere");
    assert_ok(cvy_save_weights(run.session, path));
    cvy_batch batch = good_batch();
    assert_ok(cvy_step(run.session, &batch));
    assert_int_not_equal(hash_of(run.session), before);
    assert_ok(cvy_load_weights(run.session, path));
    assert_int_equal(hash_of(run.session), before);
    close_run(&run);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left there */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_session_at_a_time),     cmocka_unit_test(null_is_freed),
        cmocka_unit_test(batches_are_checked),       cmocka_unit_test(std_is_1_unless_given),
        cmocka_unit_test(split_calls_have_an_order), cmocka_unit_test(results_need_outputs),
        cmocka_unit_test(inference_does_not_train),  cmocka_unit_test(bad_numbers_are_traced),
        cmocka_unit_test(weights_are_checked),
    };
    return cmocka_run_group_tests(tests, fill_images, NULL);
}
