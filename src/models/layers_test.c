/* The public layer functions: parameters, attributes, defaults, names, and errors that stick. */
#include "models/layers.h"
#include "ops/batch_norm.h"
#include "ops/conv2d.h"
#include "ops/dropout.h"
#include "ops/layer_norm.h"
#include "ops/pool.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    cvy_graph *g;
    cvy_value images; /* N,6,12,10 */
};

static int set_up(void **state) {
    static struct fixture f;
    if (cvy_graph_new(&f.g) != CVY_OK)
        return -1;
    f.images = cvy_input(f.g, "images", 6, 12, 10);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    cvy_graph_free(((struct fixture *)*state)->g);
    return 0;
}

static const struct cvy_value_info *find(const cvy_graph *g, const char *name) {
    cvy_value v = cvy_graph_find(g, name);
    if (v == CVY_NONE)
        fail_msg("there is no %s", name);
    return cvy_graph_value(g, v);
}

static const struct cvy_node *producer(const cvy_graph *g, cvy_value v) {
    if (v == CVY_NONE)
        fail_msg("%s", cvy_graph_status(g) == CVY_OK ? "no value, and no error" : cvy_error());
    return &g->nodes.data[cvy_graph_value(g, v)->node];
}

static void assert_shape(const cvy_graph *g, cvy_value v, struct cvy_shape expected) {
    struct cvy_text text = {0};
    if (v == CVY_NONE)
        fail_msg("%s", cvy_graph_status(g) == CVY_OK ? "no value, and no error" : cvy_error());
    cvy_desc_print(&text, &cvy_graph_value(g, v)->desc);
    if (!cvy_shape_equal(&cvy_graph_value(g, v)->desc.shape, &expected))
        fail_msg("%s has the shape %s", cvy_graph_value(g, v)->name, text.data);
    cvy_text_free(&text);
}

static void test_conv2d(void **state) {
    const struct fixture *f = *state;
    cvy_value y = cvy_conv2d(f->g, f->images, &(cvy_conv2d_args){.out_channels = 4, .kernel = 3});
    assert_shape(f->g, y, CVY_SHAPE(f->g->batch, 4, 10, 8));
    const struct cvy_node *node = producer(f->g, y);
    assert_string_equal(node->name, "conv2d");
    assert_int_equal(node->stage, -1);
    assert_true(fabs(find(f->g, "conv2d.weight")->init.scale - 1 / sqrt(6 * 9)) < 1e-15);
    assert_shape(f->g, cvy_graph_find(f->g, "conv2d.bias"), CVY_SHAPE(4));

    cvy_stage(f->g, 2);
    y = cvy_conv2d(f->g, f->images,
                   &(cvy_conv2d_args){.out_channels = 9,
                                      .kernel_hw = {3, 1},
                                      .stride = 2,
                                      .padding = 1,
                                      .dilation = 2,
                                      .groups = 3,
                                      .no_bias = true});
    node = producer(f->g, y);
    const struct cvy_conv2d_attrs *attrs = node->attrs;
    assert_string_equal(node->name, "conv2d#2");
    assert_int_equal(node->stage, 2);
    assert_shape(f->g, y,
                 CVY_SHAPE(f->g->batch, 9, 5, 6)); /* (12 + 2 - 4 - 1) / 2 + 1, (10 + 2 - 1) / 2 + 1 */
    assert_shape(f->g, node->in[1], CVY_SHAPE(9, 2, 3, 1));
    assert_int_equal(node->in[2], CVY_NONE);
    assert_int_equal(attrs->dilation[1], 2);
    assert_true(fabs(find(f->g, "conv2d#2.weight")->init.scale - 1 / sqrt(2 * 3)) < 1e-15);
    assert_int_equal(cvy_graph_find(f->g, "conv2d#2.bias"), CVY_NONE);
}

static void test_linear_acts_on_the_last_dimension(void **state) {
    const struct fixture *f = *state;
    cvy_value y = cvy_linear(f->g, f->images, &(cvy_linear_args){.name = "head", .out_features = 5});
    assert_shape(f->g, y, CVY_SHAPE(f->g->batch, 6, 12, 5));
    assert_shape(f->g, cvy_graph_find(f->g, "head.weight"), CVY_SHAPE(5, 10));
    y = cvy_linear(f->g, y, &(cvy_linear_args){.out_features = 3, .no_bias = true});
    assert_shape(f->g, y, CVY_SHAPE(f->g->batch, 6, 12, 3));
    assert_int_equal(cvy_graph_find(f->g, "linear.bias"), CVY_NONE);
}

/* The layer is two nodes: the second moves the running statistics, once a step. */
static void test_batch_norm(void **state) {
    const struct fixture *f = *state;
    cvy_value y = cvy_batch_norm(f->g, f->images, &(cvy_batch_norm_args){.name = "bn", .momentum = 0.25});
    const struct cvy_batch_norm_attrs *attrs = producer(f->g, y)->attrs;
    assert_shape(f->g, y, CVY_SHAPE(f->g->batch, 6, 12, 10));
    assert_true(attrs->eps == 1e-5 && attrs->momentum == 0.25 && attrs->training);

    const struct cvy_node *update = &f->g->nodes.data[f->g->nodes.n - 1];
    attrs = update->attrs;
    assert_string_equal(update->op->name, "batch_norm_update");
    assert_int_equal(update->phase, CVY_PHASE_UPDATE);
    assert_true(attrs->momentum == 0.25);
    assert_int_equal(update->in[0], cvy_graph_find(f->g, "bn.running_mean"));
    assert_int_equal(update->in[1], cvy_graph_find(f->g, "bn.running_var"));
    assert_int_equal(update->in[2], cvy_graph_find(f->g, "bn.num_batches_tracked"));
    assert_int_equal(update->in[3], producer(f->g, y)->out[CVY_BATCH_NORM_STATS]);
    assert_int_equal(find(f->g, "bn.num_batches_tracked")->desc.dtype, CVY_I64);
    assert_int_equal(find(f->g, "bn.running_var")->kind, CVY_VALUE_BUFFER);
    assert_int_equal(find(f->g, "bn.weight")->kind, CVY_VALUE_PARAM);
}

static void test_layer_norm(void **state) {
    const struct fixture *f = *state;
    cvy_value y = cvy_layer_norm(f->g, f->images, &(cvy_layer_norm_args){.name = NULL});
    assert_shape(f->g, y, CVY_SHAPE(f->g->batch, 6, 12, 10));
    assert_true(((const struct cvy_layer_norm_attrs *)producer(f->g, y)->attrs)->eps == 1e-5);
    assert_shape(f->g, cvy_graph_find(f->g, "layer_norm.weight"), CVY_SHAPE(6));
    assert_int_equal(find(f->g, "layer_norm.weight")->init.kind, CVY_INIT_ONE);
    assert_int_equal(find(f->g, "layer_norm.bias")->init.kind, CVY_INIT_ZERO);

    y = cvy_layer_norm(f->g, cvy_mean(f->g, y), &(cvy_layer_norm_args){.name = "ln"});
    assert_int_equal(y, CVY_NONE); /* N alone has no channels */
    assert_int_equal(cvy_graph_status(f->g), CVY_ERR_USAGE);
}

static void test_pools(void **state) {
    const struct fixture *f = *state;
    const cvy_pool_args ceiled = {.kernel = 3, .stride = 2, .ceil_mode = true, .exclude_padding = true};
    assert_shape(f->g, cvy_max_pool(f->g, f->images, &(cvy_pool_args){.kernel = 3}),
                 CVY_SHAPE(f->g->batch, 6, 4, 3));
    assert_shape(f->g, cvy_max_pool(f->g, f->images, &ceiled), CVY_SHAPE(f->g->batch, 6, 6, 5));
    cvy_value y = cvy_avg_pool(f->g, f->images, &ceiled);
    const struct cvy_pool_attrs *attrs = producer(f->g, y)->attrs;
    assert_shape(f->g, y, CVY_SHAPE(f->g->batch, 6, 6, 5));
    assert_false(attrs->count_include_pad);
    y = cvy_avg_pool(f->g, f->images, &(cvy_pool_args){.kernel = 2, .padding = 1});
    attrs = producer(f->g, y)->attrs;
    assert_true(attrs->count_include_pad);
    assert_shape(f->g, cvy_adaptive_avg_pool(f->g, f->images, 5, 7), CVY_SHAPE(f->g->batch, 6, 5, 7));
}

static void test_layers_without_parameters(void **state) {
    const struct fixture *f = *state;
    cvy_value x = cvy_relu(f->g, f->images);
    cvy_value y = cvy_add(f->g, x, cvy_relu(f->g, x));
    assert_string_equal(producer(f->g, producer(f->g, y)->in[1])->name, "relu#2");
    y = cvy_softmax(f->g, cvy_flatten(f->g, y));
    assert_shape(f->g, y, CVY_SHAPE(f->g->batch, 720));
    assert_shape(f->g, cvy_mean(f->g, x), CVY_SHAPE(f->g->batch));
    assert_shape(f->g, cvy_batch_mean(f->g, cvy_mean(f->g, x)), CVY_SHAPE(1));
    assert_false(find(f->g, "divisor")->has_batch);
    if (cvy_graph_verify(f->g) != CVY_OK)
        fail_msg("%s", cvy_error());
}

/* Two dropouts share the generator's counters, but not their numbers. */
static void test_dropout(void **state) {
    const struct fixture *f = *state;
    cvy_value y = cvy_dropout(f->g, f->images, 0.3), z = cvy_dropout(f->g, y, 0.5);
    const struct cvy_node *first = producer(f->g, y), *second = producer(f->g, z);
    const struct cvy_dropout_attrs *attrs = first->attrs;
    assert_true(attrs->p == 0.3);
    assert_int_equal(attrs->id, first->id);
    assert_int_equal(((const struct cvy_dropout_attrs *)second->attrs)->id, second->id);
    assert_int_equal(first->in[1], second->in[1]);
    assert_int_equal(first->in[1], cvy_graph_find(f->g, "rng"));
}

static void test_cross_entropy_names_its_results(void **state) {
    const struct fixture *f = *state;
    cvy_value logits = cvy_linear(f->g, cvy_flatten(f->g, f->images), &(cvy_linear_args){.out_features = 7});
    cvy_value loss = cvy_cross_entropy(f->g, logits, cvy_labels(f->g), 0.1);
    assert_shape(f->g, loss, CVY_SHAPE(1));
    assert_int_equal(cvy_graph_output(f->g, "loss"), loss);
    assert_shape(f->g, cvy_graph_output(f->g, "losses"), CVY_SHAPE(f->g->batch));
    assert_shape(f->g, cvy_graph_output(f->g, "ranks"), CVY_SHAPE(f->g->batch));
    assert_shape(f->g, cvy_graph_output(f->g, "hits"), CVY_SHAPE(2));
}

static void test_first_error_sticks(void **state) {
    const struct fixture *f = *state;
    cvy_value y = cvy_conv2d(f->g, f->images, &(cvy_conv2d_args){.name = "stem", .kernel = 3});
    assert_int_equal(y, CVY_NONE);
    size_t n = f->g->values.n;
    y = cvy_batch_norm(f->g, y, &(cvy_batch_norm_args){.name = "bn"});
    y = cvy_linear(f->g, cvy_flatten(f->g, cvy_dropout(f->g, y, 0.5)), &(cvy_linear_args){.out_features = 2});
    assert_int_equal(cvy_cross_entropy(f->g, y, cvy_labels(f->g), 0), CVY_NONE);
    assert_int_equal(f->g->values.n, n);
    assert_int_equal(cvy_graph_status(f->g), CVY_ERR_USAGE);
    assert_string_equal(cvy_error(), "stem: out_channels is 0, it must be at least 1");
}

static void test_refusals(void **state) {
    struct fixture *f = *state;
    static const struct {
        cvy_conv2d_args args;
        const char *words;
    } cases[] = {
        {{.name = "c", .out_channels = 4}, "c: kernel is 0"},
        {{.name = "c", .out_channels = 4, .kernel = 3, .groups = -1}, "c: groups is -1"},
        {{.name = "c", .out_channels = 4, .kernel = 3, .groups = 4}, "c"},
        {{.name = "c", .out_channels = 4, .kernel = 13}, "c"},
        {{.name = "a b", .out_channels = 4, .kernel = 3}, "a b.weight"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(cvy_conv2d(f->g, f->images, &cases[i].args), CVY_NONE);
        assert_int_equal(cvy_graph_status(f->g), CVY_ERR_USAGE);
        assert_non_null(strstr(cvy_error(), cases[i].words));
        cvy_graph_free(f->g);
        assert_int_equal(set_up(state), 0);
    }
    const cvy_linear_args twice = {.name = "fc", .out_features = 4};
    cvy_linear(f->g, cvy_linear(f->g, f->images, &twice), &twice);
    assert_int_equal(cvy_graph_status(f->g), CVY_ERR_USAGE);
    assert_non_null(strstr(cvy_error(), "fc.weight"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_conv2d),
        TEST(test_linear_acts_on_the_last_dimension),
        TEST(test_batch_norm),
        TEST(test_layer_norm),
        TEST(test_pools),
        TEST(test_layers_without_parameters),
        TEST(test_dropout),
        TEST(test_cross_entropy_names_its_results),
        TEST(test_first_error_sticks),
        TEST(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
