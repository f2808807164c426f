/* Models: sizes, names, initial distributions, and what they refuse. */
#include "models/models.h"
#include "models/summary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A graph with the model on images of this size; the logits. */
static cvy_value make(cvy_graph **g, const char *model, int64_t channels, int64_t size, int64_t num_classes) {
    assert_int_equal(cvy_graph_new(g), CVY_OK);
    return cvy_model(*g, model, cvy_input(*g, "images", channels, size, size), num_classes);
}

static void assert_ok(const cvy_graph *g) {
    if (cvy_graph_status(g) != CVY_OK)
        fail_msg("%s", cvy_error());
    if (cvy_graph_verify(g) != CVY_OK)
        fail_msg("%s", cvy_error());
}

/* Numbers of parameters as torchvision and the literature give them; multiply-adds of convolutions and linear
   layers as torchvision's documentation gives them (GFLOPS there), 0: not given. */
static const struct {
    const char *name;
    int64_t channels, size, num_classes, n_parameters;
    double multiply_adds;
} EXPECTED[] = {
    {"simple", 1, 12, 10, 10 + 110, 0},
    {"lenet5", 1, 28, 10, 156 + 2416 + 94200 + 10164 + 850, 0},
    {"lenet5", 3, 32, 100, 456 + 2416 + 123000 + 10164 + 8500, 0},
    {"lenet5", 1, 8, 10, 21386, 0},
    {"resnet20", 3, 32, 10, 272474, 0.041e9},
    {"resnet32", 3, 32, 10, 466906, 0.0695e9},
    {"resnet56", 3, 32, 10, 855770, 0.126e9},
    {"resnet18_cifar", 3, 32, 10, 11173962, 0.556e9},
    {"wrn28_10", 3, 32, 10, 36479194, 5.25e9},
    {"resnet18", 3, 224, 1000, 11689512, 1.814e9},
    {"resnet50", 3, 224, 1000, 25557032, 4.089e9},
    {"resnext50_32x4d", 3, 224, 1000, 25028904, 4.23e9},
    {"wide_resnet50_2", 3, 224, 1000, 68883240, 11.40e9},
    {"alexnet", 3, 224, 1000, 61100840, 0.714e9},
    {"vgg16", 3, 224, 1000, 138357544, 15.470e9},
    {"densenet121", 3, 224, 1000, 7978856, 2.834e9},
    {"squeezenet1_1", 3, 224, 1000, 1235496, 0.349e9},
    {"shufflenet_v2_x1_0", 3, 224, 1000, 2278604, 0},
    {"mobilenet_v2", 3, 224, 1000, 3504872, 0},
    {"mobilenet_v3_small", 3, 224, 1000, 2542856, 0},
    {"regnet_y_400mf", 3, 224, 1000, 4344144, 0.402e9},
};

static void test_parameters_and_flops(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof EXPECTED / sizeof *EXPECTED; i++) {
        const struct cvy_model *model = cvy_model_find(EXPECTED[i].name);
        assert_non_null(model);
        const struct cvy_summary_input input = {.channels = EXPECTED[i].channels,
                                                .height = EXPECTED[i].size,
                                                .width = EXPECTED[i].size,
                                                .num_classes = EXPECTED[i].num_classes,
                                                .batch = 3};
        struct cvy_summary summary;
        assert_int_equal(cvy_model_summarize(model, &input, &summary), CVY_OK);
        assert_int_equal(summary.n_parameters, EXPECTED[i].n_parameters);
        /* the other operators add a few per cent */
        double flops = 2 * EXPECTED[i].multiply_adds;
        if (flops > 0 && !(summary.forward_flops > 0.99 * flops && summary.forward_flops < 1.05 * flops))
            fail_msg("%s: %g FLOPs, expected about %g", model->name, summary.forward_flops, flops);
        assert_true(summary.forward_flops > 0);
    }
}

/* Written out for lenet5 on 8x8: its forward results are conv1 6x8x8, relu, pool 6x4x4, conv2 16x4x4, relu,
   pool 16x2x2, fc1 120, relu, fc2 84, relu, fc3 10 floats an image, and the pools' indices. */
static void test_summary_of_activations(void **state) {
    (void)state;
    const struct cvy_summary_input input = {.channels = 1, .height = 8, .width = 8, .batch = 5};
    struct cvy_summary five, one;
    const struct cvy_model *model = cvy_model_find("lenet5");
    assert_int_equal(cvy_model_summarize(model, &input, &five), CVY_OK);
    int64_t n_floats = 2 * 6 * 64 + 6 * 16 + 2 * 16 * 16 + 16 * 4 + 2 * 120 + 2 * 84 + 10;
    int64_t n_indices = 6 * 16 + 16 * 4;
    assert_true(five.activation_bytes >= 5 * 4 * n_floats);
    assert_true(five.activation_bytes <= 5 * (4 * n_floats + 8 * n_indices));
    assert_int_equal(five.weight_bytes, 4 * 21386);
    assert_int_equal(five.n_buffers, 0);

    assert_int_equal(cvy_model_summarize(model, &(struct cvy_summary_input){0}, &one), CVY_OK);
    assert_int_equal(one.input.height, 28);
    assert_int_equal(one.input.num_classes, 10);
    assert_int_equal(one.input.batch, 1);
}

/* The state_dict as text: names, types and shapes in their order, a line each. */
static void print_names(const char *model, struct cvy_text *out) {
    cvy_graph *g;
    make(&g, model, 3, 224, 1000);
    assert_ok(g);
    for (size_t i = 0; i < g->values.n; i++) {
        const struct cvy_value_info *value = &g->values.data[i];
        if (value->kind != CVY_VALUE_PARAM && value->kind != CVY_VALUE_BUFFER)
            continue;
        cvy_text_printf(out, "%s ", value->name);
        cvy_desc_print(out, &value->desc);
        cvy_text_printf(out, "\n");
    }
    cvy_graph_free(g);
}

static void test_names_of_resnet18(void **state) {
    (void)state;
    struct cvy_text text = {0};
    char *expected;
    size_t n;
    print_names("resnet18", &text);
    assert_int_equal(cvy_read_file("tests/golden/models/resnet18.keys", 1 << 20, &expected, &n), CVY_OK);
    assert_string_equal(text.data, expected);
    free(expected);
    cvy_text_free(&text);
}

/* FNV-1a */
static uint64_t hash_of(const char *text) {
    uint64_t value = 0xCBF29CE484222325;
    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * 0x100000001B3;
    return value;
}

/* tools/make_golden_names.py */
static void test_names_of_torchvision(void **state) {
    (void)state;
    char *text, *line, *next = NULL;
    size_t n, n_models, n_expected = 0;
    const struct cvy_model *const *table = cvy_model_table(&n_models);
    assert_int_equal(cvy_read_file("tests/golden/models/torchvision.txt", 1 << 20, &text, &n), CVY_OK);
    for (line = text; *line; line = next, n_expected++) {
        struct cvy_text names = {0};
        struct cvy_summary summary;
        next = line + strcspn(line, "\n");
        next += *next == '\n';
        size_t length = strcspn(line, " ");
        line[length] = '\0';
        const struct cvy_model *model = cvy_model_find(line);
        if (!model)
            fail_msg("there is no %s", line);
        assert_int_equal(cvy_model_summarize(model, &(struct cvy_summary_input){0}, &summary), CVY_OK);
        char *hash;
        assert_int_equal(summary.n_parameters, strtoll(line + length + 1, &hash, 10));
        print_names(line, &names);
        if (hash_of(names.data) != strtoull(hash, NULL, 16))
            fail_msg("%s has other names, shapes or another order than torchvision's", line);
        cvy_text_free(&names);
    }
    free(text);
    for (size_t i = 0; i < n_models; i++)
        n_expected -= table[i]->num_classes == 1000;
    assert_int_equal(n_expected, 0); /* none for ImageNet is missing there */
}

static void test_shapes(void **state) {
    (void)state;
    size_t n;
    const struct cvy_model *const *table = cvy_model_table(&n);
    assert_true(n >= 6);
    for (size_t i = 0; i < n; i++) {
        const struct cvy_model *model = table[i];
        const int64_t sizes[] = {model->min_size, model->min_size + 1, 17, model->height};
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            cvy_graph *g;
            if (sizes[k] < model->min_size)
                continue;
            cvy_value logits = make(&g, model->name, 2, sizes[k], 7);
            assert_ok(g);
            const struct cvy_shape *shape = &cvy_graph_value(g, logits)->desc.shape;
            const struct cvy_shape scores = CVY_SHAPE(g->batch, 7);
            assert_int_equal(shape->dim[shape->n - 1], 7);
            assert_int_equal(cvy_shape_equal(shape, &scores), model->is_classifier);
            cvy_graph_free(g);
        }
    }
}

static struct cvy_init init_of(const cvy_graph *g, const char *name) {
    cvy_value v = cvy_graph_find(g, name);
    if (v == CVY_NONE)
        fail_msg("there is no %s", name);
    return cvy_graph_value(g, v)->init;
}

static void assert_init(const cvy_graph *g, const char *name, enum cvy_init_kind kind, double scale) {
    struct cvy_init init = init_of(g, name);
    assert_int_equal(init.kind, kind);
    if (kind == CVY_INIT_UNIFORM || kind == CVY_INIT_NORMAL)
        assert_true(fabs(init.scale - scale) <= 1e-12 * scale);
}

static void test_initial_distributions(void **state) {
    (void)state;
    cvy_graph *g;
    make(&g, "resnet50", 3, 64, 1000);
    assert_init(g, "conv1.weight", CVY_INIT_NORMAL, sqrt(2.0 / (64 * 49)));
    assert_init(g, "layer2.0.conv3.weight", CVY_INIT_NORMAL, sqrt(2.0 / 512));
    assert_init(g, "layer2.0.downsample.0.weight", CVY_INIT_NORMAL, sqrt(2.0 / 512));
    assert_init(g, "bn1.weight", CVY_INIT_ONE, 0);
    assert_init(g, "bn1.bias", CVY_INIT_ZERO, 0);
    assert_init(g, "bn1.running_mean", CVY_INIT_ZERO, 0);
    assert_init(g, "bn1.running_var", CVY_INIT_ONE, 0);
    assert_init(g, "bn1.num_batches_tracked", CVY_INIT_ZERO, 0);
    assert_init(g, "fc.weight", CVY_INIT_UNIFORM, 1 / sqrt(2048));
    assert_init(g, "fc.bias", CVY_INIT_UNIFORM, 1 / sqrt(2048));
    cvy_graph_free(g);
    make(&g, "lenet5", 1, 28, 10);
    assert_init(g, "conv2.weight", CVY_INIT_UNIFORM, 1 / sqrt(150));
    assert_init(g, "conv2.bias", CVY_INIT_UNIFORM, 1 / sqrt(150));
    cvy_graph_free(g);
}

static void assert_refused(const char *model, int64_t channels, int64_t size, int64_t num_classes,
                           const char *words) {
    cvy_graph *g;
    assert_int_equal(make(&g, model, channels, size, num_classes), CVY_NONE);
    assert_int_equal(cvy_graph_status(g), CVY_ERR_USAGE);
    if (!strstr(cvy_error(), words))
        fail_msg("\"%s\" does not say \"%s\"", cvy_error(), words);
    cvy_graph_free(g);
}

static void test_refusals(void **state) {
    (void)state;
    assert_refused("resnet81", 3, 32, 10, "did you mean 'resnet");
    assert_refused("vgg", 3, 32, 10, "unknown model 'vgg': ");
    assert_refused("lenet5", 1, 3, 10, "at least 1x4x4");
    assert_refused("resnet20", 3, 32, 0, "number of classes is 0");
    assert_null(cvy_model_find("resnet"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters_and_flops),
        cmocka_unit_test(test_summary_of_activations),
        cmocka_unit_test(test_names_of_resnet18),
        cmocka_unit_test(test_names_of_torchvision),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_initial_distributions),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
