/* Plans, graphs, data sets and loaders, misused through convoy.h: every mistake gives its own code and one clear
   line. Sessions: see api_session_test.c. */
#include "small_network.h"

#include <stdlib.h>
#include <string.h>

static void options_are_checked(void **state) {
    (void)state;
    static const struct {
        cvy_plan_options options;
        const char *text;
    } bad[] = {
        {{.batch_size = 4, .optimizer = "sdg"}, "did you mean sgd"},
        {{.batch_size = 4, .optimizer = "sgd", .optimizer_attributes = "momentom=0.9"}, "momentum"},
        {{.batch_size = 4, .optimizer = "sgd", .optimizer_attributes = "momentum=much"}, "momentum"},
        {{.batch_size = 4, .strategy = "ddpp"}, "did you mean ddp"},
        {{.batch_size = 4, .backend = "cpuu"}, "did you mean cpu"},
        {{.batch_size = 4, .conv_algo = "winogard"}, "direct or winograd"},
        {{.batch_size = 4, .devices = "cpi:0"}, "did you mean cpu"},
        {{.batch_size = 4, .devices = "cpu:0,cpu:0"}, "twice"},
        {{.batch_size = 4, .devices = "cpu:3-1"}, "cpu:0-3"},
        {{.batch_size = 4, .devices = "cpu"}, "cpu:0"},
        {{.batch_size = 4, .devices = ""}, "empty"},
        {{.batch_size = 4, .devices = "cpu:0-1", .strategy = "single"}, "ddp"},
        {{.batch_size = 4, .devices = "cpu:0-3", .shards = 2}, "4"},
        {{.batch_size = 0}, "batch size 0"},
        {{.batch_size = INT64_MAX}, "batch size 9223372036854775807"},
        {{.batch_size = 4, .shards = -1}, "-1 shards"},
        {{.batch_size = 4, .shards = INT64_MAX}, "shards"},
        {{.batch_size = 4, .threads_per_device = -1}, "-1 threads"},
        {{.batch_size = 4, .threads_per_device = 1000000}, "1000000 threads"},
    };
    cvy_graph *g = make_graph(4);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cvy_plan *plan = NULL;
        cvy_status status = cvy_plan_new(g, &bad[i].options, &plan);
        if (status == CVY_OK || plan)
            fail_msg("options %zu were accepted", i);
        assert_int_equal(status, CVY_ERR_USAGE);
        if (!strstr(cvy_error(), bad[i].text))
            fail_msg("options %zu: '%s' lacks '%s'", i, cvy_error(), bad[i].text);
    }
    cvy_graph_free(g);
}

static cvy_status plan_of(cvy_graph *g, const char *optimizer) {
    cvy_plan_options options = good_options("cpu:0");
    cvy_plan *plan = NULL;
    options.optimizer = optimizer;
    cvy_status status = cvy_plan_new(g, &options, &plan);
    cvy_plan_free(plan);
    cvy_graph_free(g);
    return status;
}

static void graphs_are_checked(void **state) {
    (void)state;
    cvy_graph *g = open_graph();
    cvy_output(g, "logits", add_network(g, 4));
    assert_fails(plan_of(g, "sgd"), CVY_ERR_USAGE, "no output \"loss\"");

    g = open_graph();
    cvy_output(g, "loss", cvy_batch_mean(g, cvy_mean(g, cvy_input(g, "images", 1, 4, 4))));
    assert_fails(plan_of(g, "sgd"), CVY_ERR_USAGE, "does not depend on any parameter");

    g = open_graph();
    cvy_output(g, "loss", cvy_mean(g, add_network(g, 4))); /* one number for each image */
    assert_fails(plan_of(g, "sgd"), CVY_ERR_USAGE, "cvy_batch_mean");

    g = open_graph();
    cvy_output(g, "loss", cvy_batch_mean(g, cvy_mean(g, cvy_input(g, "pictures", 1, 4, 4))));
    assert_fails(plan_of(g, NULL), CVY_ERR_USAGE, "\"pictures\"");

    g = open_graph();
    cvy_input(g, "labels", 1, 1, 1);
    assert_fails(plan_of(g, NULL), CVY_ERR_USAGE, "input \"labels\" is f32");

    g = open_graph();
    cvy_output(g, "ranks", add_network(g, 4));
    assert_fails(plan_of(g, NULL), CVY_ERR_USAGE, "output \"ranks\" is f32");

    g = open_graph();
    cvy_output(g, "logits", cvy_batch_mean(g, cvy_mean(g, add_network(g, 4))));
    assert_fails(plan_of(g, NULL), CVY_ERR_USAGE, "output \"logits\" is f32[1]");
}

/* The first mistake is the one that is told, by whoever uses the graph; the calls after it do nothing. */
static void graph_errors_stick(void **state) {
    (void)state;
    cvy_graph *g = open_graph();
    cvy_value x = cvy_input(g, "images", 1, SIDE, SIDE);
    assert_int_equal(cvy_model(g, "lenet6", x, 10), CVY_NONE);
    assert_int_equal(cvy_relu(g, x), CVY_NONE);
    assert_fails(cvy_graph_status(g), CVY_ERR_USAGE, "did you mean 'lenet5'");
    assert_fails(plan_of(g, NULL), CVY_ERR_USAGE, "lenet6");

    g = open_graph();
    x = cvy_input(g, "images", 1, SIDE, SIDE);
    cvy_apply(g, "max_poll", "pool", &x, 1, "kernel=2x2");
    assert_fails(plan_of(g, NULL), CVY_ERR_USAGE, "did you mean \"max_pool\"");

    g = open_graph();
    cvy_linear(g, 1234, &(cvy_linear_args){.name = "fc", .out_features = 3});
    assert_fails(plan_of(g, NULL), CVY_ERR_USAGE, "not a value of this graph");

    g = open_graph();
    x = cvy_input(g, "images", 1, SIDE, SIDE);
    cvy_conv2d(g, x, &(cvy_conv2d_args){.name = "c", .out_channels = 2, .kernel = 3});
    cvy_conv2d(g, x, &(cvy_conv2d_args){.name = "c", .out_channels = 2, .kernel = 3});
    assert_fails(plan_of(g, NULL), CVY_ERR_USAGE, "\"c.weight\" is taken");

    g = open_graph();
    x = cvy_input(g, "images", 1, SIDE, SIDE);
    cvy_conv2d(g, x, &(cvy_conv2d_args){.name = "c", .out_channels = 2, .kernel = SIDE + 1});
    assert_fails(plan_of(g, NULL), CVY_ERR_USAGE, "c: ");

    g = open_graph();
    cvy_output(g, "loss", CVY_NONE);
    assert_fails(plan_of(g, NULL), CVY_ERR_USAGE, "output \"loss\"");
}

/* ---- who works on what --------------------------------------------------------------------------------- */

/* What a plan on four devices gives its device k of a batch of n. */
static void assert_part(const char *strategy, const char *mesh, int64_t n, const int64_t expected[4][2]) {
    cvy_graph *g = make_graph(4);
    cvy_plan_options options = good_options("cpu:0-3");
    cvy_plan *plan;
    options.strategy = strategy;
    options.mesh = mesh;
    options.shards = 4;
    assert_ok(cvy_plan_new(g, &options, &plan));
    for (int k = 0; k < 4; k++) {
        int64_t first = -1, count = -1;
        assert_ok(cvy_plan_images(plan, k, n, &first, &count));
        assert_int_equal(first, expected[k][0]);
        assert_int_equal(count, expected[k][1]);
    }
    int64_t first = -1, count = -1;
    assert_fails(cvy_plan_images(plan, 4, n, &first, &count), CVY_ERR_USAGE, "device 4 of 4");
    assert_fails(cvy_plan_images(plan, -1, n, &first, &count), CVY_ERR_USAGE, "device -1");
    assert_fails(cvy_plan_images(plan, 0, -1, &first, &count), CVY_ERR_USAGE, "-1 images");
    assert_int_equal(first, -1);
    assert_int_equal(count, -1);
    cvy_plan_free(plan);
    cvy_graph_free(g);
}

static void images_are_shared_out(void **state) {
    (void)state;
    assert_part("ddp", NULL, 6, (const int64_t[4][2]){{0, 1}, {1, 2}, {3, 1}, {4, 2}});
    assert_part("dp", NULL, 3, (const int64_t[4][2]){{0, 0}, {0, 1}, {1, 1}, {2, 1}});
    assert_part("mp", NULL, 6, (const int64_t[4][2]){{0, 6}, {0, 6}, {0, 6}, {0, 6}});
    assert_part("hybrid", "data=2,pipe=2", 5, (const int64_t[4][2]){{0, 2}, {0, 2}, {2, 3}, {2, 3}});
}

/* A stage's row names all devices that hold it, in whatever order they were listed. */
static void stages_name_their_devices(void **state) {
    (void)state;
    cvy_graph *g = make_graph(4);
    cvy_plan_options options = good_options("cpu:0,cpu:2,cpu:1,cpu:3");
    cvy_plan *plan;
    char *text;
    options.strategy = "hybrid";
    options.mesh = "data=2,pipe=2";
    assert_ok(cvy_plan_new(g, &options, &plan));
    assert_ok(cvy_plan_explain(plan, NULL, &text));
    assert_non_null(strstr(text, "\n    0  cpu:0,cpu:1 "));
    assert_non_null(strstr(text, "\n    1  cpu:2,cpu:3 "));
    free(text);
    cvy_plan_free(plan);
    cvy_graph_free(g);
}

/* ---- data ------------------------------------------------------------------------------------------- */

static void data_are_checked(void **state) {
    (void)state;
    cvy_dataset *set = NULL;
    cvy_loader *loader = NULL;
    cvy_loader_options options;
    cvy_batch batch;
    assert_fails(cvy_dataset_open("digit", CVY_SPLIT_TRAIN, NULL, &set), CVY_ERR_USAGE, "'digits'");
    assert_int_equal(cvy_exit_code(cvy_dataset_open("folder:/nowhere", CVY_SPLIT_TRAIN, NULL, &set)), 3);
    assert_non_null(strstr(cvy_error(), "/nowhere"));
    assert_null(set);
    assert_ok(cvy_dataset_open("digits", CVY_SPLIT_VAL, NULL, &set));
    assert_null(cvy_dataset_class_name(set, cvy_dataset_classes(set)));
    cvy_loader_defaults(&options);
    options.batch_size = 0;
    assert_fails(cvy_loader_new(set, &options, &loader), CVY_ERR_USAGE, "batch size 0");
    options.batch_size = 361;
    assert_fails(cvy_loader_new(set, &options, &loader), CVY_ERR_USAGE, "360 images");
    options.batch_size = 360;
    options.preset = "cifra";
    assert_fails(cvy_loader_new(set, &options, &loader), CVY_ERR_USAGE, "cifar");
    assert_null(loader);
    options.preset = NULL;
    assert_ok(cvy_loader_new(set, &options, &loader));
    assert_int_equal(cvy_loader_next(loader, &batch), CVY_END); /* no epoch was started */
    assert_fails(cvy_loader_start(loader, -1), CVY_ERR_USAGE, "epoch -1");
    assert_ok(cvy_loader_start(loader, 0));
    assert_ok(cvy_loader_next(loader, &batch));
    assert_int_equal(batch.n, 360);
    assert_int_equal(cvy_loader_next(loader, &batch), CVY_END);
    cvy_loader_free(loader);
    cvy_dataset_free(set);
}

static void exit_codes(void **state) {
    (void)state;
    static const struct {
        cvy_status status;
        int code;
    } expected[] = {{CVY_OK, 0},       {CVY_END, 0},      {CVY_ERR_FAILED, 1},      {CVY_ERR_MEMORY, 1},
                    {CVY_ERR_IO, 1},   {CVY_ERR_NAN, 1},  {CVY_ERR_UNSUPPORTED, 1}, {CVY_ERR_USAGE, 2},
                    {CVY_ERR_DATA, 3}, {CVY_ERR_LOST, 4}, {CVY_INTERRUPTED, 130}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(cvy_exit_code(expected[i].status), expected[i].code);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(graphs_are_checked),
        cmocka_unit_test(graph_errors_stick),
        cmocka_unit_test(data_are_checked),
        cmocka_unit_test(exit_codes),
        cmocka_unit_test(images_are_shared_out),
        cmocka_unit_test(stages_name_their_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
