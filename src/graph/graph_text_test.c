/* The text form: one golden text, random graphs that survive print and parse, and wrong text that is refused with
   its line. */
#include "graph/graph.h"

#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cvy_test.h"

static const char golden[] =
    "graph batch 2 next 5 buckets 1\n"
    "input images f32[2,3,8,8] batch\n"
    "param conv.weight f32[4,3,3,3] uniform(0.2)\n"
    "conv f32[2,4,8,8] = conv2d(images, conv.weight) kernel=3x3 padding=1x1  ; stage 0, id 1\n"
    "pool.y f32[2,4,4,4], pool.index i32[2,4,4,4] = max_pool(conv) kernel=2x2  ; stage 1, id 2\n"
    "input divisor f32[1]\n"
    "relu f32[2,4,4,4] = relu(pool.y)  ; id 3, algorithm 2\n"
    "hyper hyper f32[2]\n"
    "state conv.momentum f32[4,3,3,3]\n"
    "conv' f32[4,3,3,3] = conv2d_backward_weights(conv, images) kernel=3x3 padding=1x1  ; id 1, backward\n"
    "conv.weight+ f32[4,3,3,3], conv.momentum+ f32[4,3,3,3] = sgd(hyper, conv.weight, conv', conv.momentum) "
    "momentum=0.9  ; layer sgd.0, id 4, update, bucket 0\n"
    "sum gradient conv' for conv.weight bucket 0\n"
    "output logits = relu\n";

static char *print(const struct cvy_graph *g) {
    struct cvy_text text = {0};
    char *out;
    assert_ok(cvy_graph_print(g, NULL, &text));
    assert_ok(cvy_text_take(&text, &out));
    return out;
}

static cvy_value root(struct cvy_graph *g, enum cvy_value_kind kind, const char *name, struct cvy_desc desc,
                      struct cvy_init init) {
    cvy_value v;
    assert_ok(cvy_graph_add_value(g, name, &desc, kind, &v));
    cvy_graph_value(g, v)->init = init;
    return v;
}

/* The graph of the golden text. */
static struct cvy_graph *golden_graph(void) {
    struct cvy_graph *g;
    struct cvy_init none = {0};
    struct cvy_desc kernel = {CVY_F32, CVY_SHAPE(4, 3, 3, 3)}, pair = {CVY_F32, CVY_SHAPE(2)};
    cvy_value divisor, gradient;
    assert_ok(cvy_graph_new(&g));
    cvy_stage(g, 0);
    cvy_value x = cvy_input(g, "images", 3, 8, 8);
    cvy_value w = root(g, CVY_VALUE_PARAM, "conv.weight", kernel, (struct cvy_init){CVY_INIT_UNIFORM, 0.2});
    cvy_value c = cvy_apply(g, "conv2d", "conv", (cvy_value[]){x, w}, 2, "kernel=3 padding=1");
    cvy_stage(g, 1);
    cvy_value p = cvy_apply(g, "max_pool", "pool", &c, 1, "kernel=2");
    assert_ok(cvy_graph_host_input(g, "divisor", &(struct cvy_desc){CVY_F32, CVY_SHAPE(1)}, false, &divisor));
    g->stage = -1;
    cvy_output(g, "logits", cvy_apply(g, "relu", NULL, &p, 1, NULL));
    g->nodes.data[2].algorithm = 2;
    cvy_value hyper = root(g, CVY_VALUE_HYPER, "hyper", pair, none);
    cvy_value momentum = root(g, CVY_VALUE_STATE, "conv.momentum", kernel, none);
    struct cvy_node conv = g->nodes.data[0];
    conv.stage = -1;
    assert_ok(cvy_graph_add_grad(g, &conv, "conv2d_backward_weights", conv.attrs, (cvy_value[]){c, x}, 2,
                                 &gradient));
    const struct cvy_op *sgd = cvy_op_find("sgd");
    char attrs[256];
    assert_true(sgd->attrs_size <= sizeof attrs);
    cvy_attrs_default(sgd, attrs);
    assert_ok(cvy_attrs_parse(sgd, "momentum=0.9", attrs));
    struct cvy_node_spec spec = {.op = sgd,
                                 .name = "sgd.0",
                                 .attrs = attrs,
                                 .n_in = 4,
                                 .phase = CVY_PHASE_UPDATE,
                                 .in = (cvy_value[]){hyper, w, gradient, momentum},
                                 .stage = -1};
    assert_ok(cvy_graph_add_node(g, &spec, NULL));
    g->nodes.data[g->nodes.n - 1].bucket = 0;
    g->n_buckets = 1;
    struct cvy_reducible sum = {gradient, w, CVY_REDUCE_GRADIENT, 0};
    assert_ok(cvy_vec_push(&g->reducibles, sum));
    return g;
}

static void assert_same_value(const struct cvy_value_info *a, const struct cvy_value_info *b) {
    assert_string_equal(a->name, b->name);
    assert_true(cvy_desc_equal(&a->desc, &b->desc));
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->node, b->node);
    assert_int_equal(a->output, b->output);
    assert_int_equal(a->init.kind, b->init.kind);
    assert_true(a->init.scale == b->init.scale);
    assert_int_equal(a->is_private, b->is_private);
    assert_int_equal(a->has_batch, b->has_batch);
}

static void assert_same_node(const struct cvy_node *a, const struct cvy_node *b) {
    assert_ptr_equal(a->op, b->op);
    assert_string_equal(a->name, b->name);
    assert_true(cvy_attrs_equal(a->op, a->attrs, b->attrs));
    assert_int_equal(a->n_in, b->n_in);
    assert_int_equal(a->n_out, b->n_out);
    assert_memory_equal(a->in, b->in, (size_t)a->n_in * sizeof *a->in);
    assert_memory_equal(a->out, b->out, (size_t)a->n_out * sizeof *a->out);
    assert_int_equal(a->phase, b->phase);
    assert_int_equal(a->stage, b->stage);
    assert_int_equal(a->bucket, b->bucket);
    assert_int_equal(a->algorithm, b->algorithm);
    assert_int_equal(a->id, b->id);
}

static void assert_same_graph(const struct cvy_graph *a, const struct cvy_graph *b) {
    assert_int_equal(a->values.n, b->values.n);
    assert_int_equal(a->nodes.n, b->nodes.n);
    assert_int_equal(a->reducibles.n, b->reducibles.n);
    assert_int_equal(a->outputs.n, b->outputs.n);
    for (size_t i = 0; i < a->values.n; i++)
        assert_same_value(&a->values.data[i], &b->values.data[i]);
    for (size_t i = 0; i < a->nodes.n; i++)
        assert_same_node(&a->nodes.data[i], &b->nodes.data[i]);
    for (size_t i = 0; i < a->reducibles.n; i++)
        assert_memory_equal(&a->reducibles.data[i], &b->reducibles.data[i], sizeof *a->reducibles.data);
    for (size_t i = 0; i < a->outputs.n; i++) {
        assert_string_equal(a->outputs.data[i].name, b->outputs.data[i].name);
        assert_int_equal(a->outputs.data[i].value, b->outputs.data[i].value);
    }
    assert_int_equal(a->n_buckets, b->n_buckets);
    assert_int_equal(a->next_id, b->next_id);
    assert_int_equal(a->batch, b->batch);
}

static void assert_round_trip(const struct cvy_graph *g) {
    struct cvy_graph *again;
    char *text = print(g);
    if (cvy_graph_parse(text, &again) != CVY_OK)
        fail_msg("%s\n%s", cvy_error(), text);
    assert_same_graph(g, again);
    char *second = print(again);
    assert_string_equal(text, second);
    free(second);
    free(text);
    cvy_graph_free(again);
}

static void test_golden(void **state) {
    (void)state;
    struct cvy_graph *g = golden_graph();
    char *text = print(g);
    assert_string_equal(text, golden);
    assert_round_trip(g);
    free(text);
    cvy_graph_free(g);
}

/* One more layer on a random value of those in `made`: all f32[2,C,8,8]. */
static cvy_value add_random_layer(struct cvy_graph *g, struct cvy_rng *rng, const cvy_value *made, int n) {
    char name[32], attributes[128];
    cvy_value x = made[cvy_rng_below(rng, (uint32_t)n)], y = made[cvy_rng_below(rng, (uint32_t)n)], w;
    snprintf(name, sizeof name, "layer%u.%d", cvy_rng_below(rng, 4), n);
    int64_t k = 1 + 2 * cvy_rng_below(rng, 3);
    switch (cvy_rng_below(rng, 4)) {
    case 0:
        return cvy_apply(g, "relu", NULL, &x, 1, NULL);
    case 1:
        return cvy_apply(g, "add", name, (cvy_value[]){x, y}, 2, NULL);
    case 2:
        snprintf(attributes, sizeof attributes, "kernel=%dx%d stride=1 padding=%dx%d ceil_mode=%s", (int)k,
                 (int)k, (int)k / 2, (int)k / 2, cvy_rng_below(rng, 2) ? "true" : "false");
        return cvy_apply(g, "max_pool", name, &x, 1, attributes);
    default:
        snprintf(attributes, sizeof attributes, "%s.weight", name);
        w = root(g, CVY_VALUE_PARAM, attributes, (struct cvy_desc){CVY_F32, CVY_SHAPE(4, 4, k, k)},
                 (struct cvy_init){(enum cvy_init_kind)cvy_rng_below(rng, CVY_N_INITS), 0});
        if (cvy_init_has_scale(cvy_graph_value(g, w)->init.kind))
            cvy_graph_value(g, w)->init.scale = cvy_rng_uniform(rng);
        snprintf(attributes, sizeof attributes, "kernel=%d padding=%d", (int)k, (int)k / 2);
        return cvy_apply(g, "conv2d", name, (cvy_value[]){x, w}, 2, attributes);
    }
}

static void test_random_graphs(void **state) {
    (void)state;
    for (uint32_t seed = 0; seed < 200; seed++) {
        struct cvy_rng rng;
        struct cvy_graph *g, *other;
        cvy_value made[41];
        int n = 1;
        cvy_rng_init(&rng, seed, CVY_RNG_TEST, 0, 0);
        assert_ok(cvy_graph_new(&g));
        made[0] = cvy_input(g, "images", 4, 8, 8);
        for (int n_layers = (int)cvy_rng_below(&rng, 41); n <= n_layers; n++) {
            if (cvy_rng_below(&rng, 5) == 0)
                cvy_stage(g, (int)cvy_rng_below(&rng, 3));
            made[n] = add_random_layer(g, &rng, made, n);
            assert_ok(cvy_graph_status(g));
            g->nodes.data[g->nodes.n - 1].algorithm = (int32_t)cvy_rng_below(&rng, 3) - 1;
        }
        cvy_output(g, "logits", made[n - 1]);
        assert_round_trip(g);
        assert_ok(cvy_graph_rebatch(g, 1 + cvy_rng_below(&rng, 9), &other));
        assert_round_trip(other);
        cvy_graph_free(other);
        cvy_graph_free(g);
    }
}

static void test_keywords_as_names(void **state) {
    (void)state;
    static const char *const names[] = {"sum", "output", "input", "param", "graph", "id", "batch"};
    struct cvy_graph *g;
    assert_ok(cvy_graph_new(&g));
    cvy_value x = cvy_input(g, "images", 1, 2, 2);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        x = cvy_apply(g, "relu", names[i], &x, 1, NULL);
    cvy_output(g, "output", x);
    assert_round_trip(g);
    cvy_graph_free(g);
}

static void print_fake_layout(const struct cvy_layout *layout, struct cvy_text *out) {
    (void)layout;
    cvy_text_printf(out, "nChw16c");
}

static void test_layouts(void **state) {
    (void)state;
    struct cvy_graph *g = golden_graph(), *again;
    struct cvy_text text = {0};
    cvy_graph_value(g, cvy_graph_find(g, "conv"))->layout = (const struct cvy_layout *)&text;
    assert_ok(cvy_graph_print(g, print_fake_layout, &text));
    assert_non_null(strstr(text.data, "conv f32[2,4,8,8]@nChw16c = conv2d("));
    assert_ok(cvy_graph_parse(text.data, &again));
    assert_same_graph(g, again);
    assert_null(cvy_graph_value(again, cvy_graph_find(again, "conv"))->layout);
    cvy_graph_free(again);
    cvy_text_free(&text);
    cvy_graph_free(g);
}

/* The golden text with its first `from` replaced. The caller frees it. */
static char *altered(const char *from, const char *to) {
    const char *at = strstr(golden, from);
    char *text;
    assert_non_null(at);
    assert_true(asprintf(&text, "%.*s%s%s", (int)(at - golden), golden, to, at + strlen(from)) > 0);
    return text;
}

static void test_refuses(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } wrong[] = {
        {"graph batch 2", "graph batch 0", "line 1: 0 must lie between"},
        {"graph batch 2", "graph batch 3", "images"},
        {"graph", "grape", "line 1: graph is expected"},
        {"next 5 buckets 1", "next 5 buckets 1 2", "line 1: the end of the line"},
        {"f32[2,3,8,8]", "f32[2,3,8", "line 2:"},
        {"f32[2,3,8,8]", "f32[2,3,8,9]", "line 4: conv is f32[2,4,8,9], not f32[2,4,8,8]"},
        {"input images", "inputt images", "line 2: output is expected"},
        {"param conv.weight", "param images", "line 3: the name \"images\" is taken"},
        {"uniform(0.2)", "uniform(x)", "line 3: \"x\" is no number"},
        {"uniform(0.2)", "unform(0.2)", "line 3: zero, one, uniform, normal or constant"},
        {"conv2d(images", "conv3d(images", "line 4: there is no operator \"conv3d\""},
        {"conv2d(images", "conv2d(conv", "line 4: no value called \"conv\" stands above"},
        {"conv2d(images,", "conv2d(images", "line 4: , is expected"},
        {"kernel=3x3", "kernel=5x5", "line 4:"},
        {"kernel=3x3", "kernle=3x3", "did you mean \"kernel\""},
        {"f32[2,4,8,8] =", "f32[2,4,8,9] =", "line 4: conv is f32[2,4,8,8], not f32[2,4,8,9]"},
        {"; stage 0, id 1", "; stage 0", "line 4: a node's line says its id"},
        {"; stage 0, id 1", "; stage 0, idd 1", "line 4: forward, backward, update or refresh"},
        {"; stage 0, id 1", "", "line 4: ; is expected where the line ends"},
        {"pool.index i32", "pool.indx u8", "line 5: output 1 of this node"},
        {", pool.index i32[2,4,4,4]", "", "line 5: max_pool makes 2 outputs, not 1"},
        {"; layer sgd.0,", ";", "line 11: the layer's name cannot be told"},
        {"bucket 0\nsum", "bucket 1\nsum", "waits for bucket 1 of 1"},
        {"sum gradient", "sum gradent", "line 12: gradient, statistic, loss or hits"},
        {"for conv.weight", "for hyper", "not shaped as a gradient"},
        {"output logits = relu", "output logits = rlu", "line 13: no value called \"rlu\""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct cvy_graph *g = NULL;
        char *text = altered(wrong[i].from, wrong[i].to);
        if (cvy_graph_parse(text, &g) == CVY_OK || !strstr(cvy_error(), wrong[i].message))
            fail_msg("'%s' for '%s': '%s' without '%s'", wrong[i].to, wrong[i].from,
                     g ? "taken" : cvy_error(), wrong[i].message);
        assert_null(g);
        free(text);
    }
    struct cvy_graph *g = NULL;
    assert_int_equal(cvy_graph_parse("", &g), CVY_ERR_DATA);
}

/* Comments, blanks and indentation mean nothing. */
static void test_white_space(void **state) {
    (void)state;
    struct cvy_graph *g = golden_graph(), *again;
    char *text = altered("input images", "\n# a remark\n  \n\tinput   images");
    assert_ok(cvy_graph_parse(text, &again));
    assert_same_graph(g, again);
    free(text);
    cvy_graph_free(again);
    cvy_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_keywords_as_names),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_white_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
