/* The graph: building, naming, copying, another batch size, and that the verifier sees every broken invariant. */
#include "graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cvy_test.h"

static cvy_value root(struct cvy_graph *g, enum cvy_value_kind kind, const char *name,
                      const char *desc_text) {
    struct cvy_desc desc;
    cvy_value v;
    assert_ok(cvy_desc_parse(desc_text, &desc));
    assert_ok(cvy_graph_add_value(g, name, &desc, kind, &v));
    return v;
}

/* images -> conv (3x3, pad 1) -> relu -> add(relu, conv) -> output "y" */
static struct cvy_graph *small_graph(void) {
    struct cvy_graph *g;
    assert_ok(cvy_graph_new(&g));
    cvy_value x = cvy_input(g, "images", 3, 8, 8);
    cvy_value w = root(g, CVY_VALUE_PARAM, "conv.weight", "f32[4,3,3,3]");
    cvy_value c = cvy_apply(g, "conv2d", "conv", (cvy_value[]){x, w}, 2, "kernel=3 padding=1");
    cvy_value r = cvy_apply(g, "relu", NULL, &c, 1, NULL);
    cvy_output(g, "y", cvy_apply(g, "add", NULL, (cvy_value[]){r, c}, 2, NULL));
    assert_ok(cvy_graph_status(g));
    assert_ok(cvy_graph_verify(g));
    return g;
}

static void test_build(void **state) {
    (void)state;
    struct cvy_graph *g = small_graph();
    const struct cvy_value_info *conv = cvy_graph_value(g, cvy_graph_find(g, "conv"));
    assert_true(cvy_shape_equal(&conv->desc.shape, &CVY_SHAPE(CVY_BUILD_BATCH, 4, 8, 8)));
    const struct cvy_node *node = &g->nodes.data[conv->node];
    assert_int_equal(node->n_in, 3); /* the absent bias has its place */
    assert_int_equal(node->in[2], CVY_NONE);
    assert_int_equal(node->id, 1);
    assert_int_equal(node->stage, -1);
    assert_int_equal(node->bucket, -1);
    assert_int_equal(cvy_graph_output(g, "y"), cvy_graph_find(g, "add"));
    assert_int_equal(cvy_graph_output(g, "z"), CVY_NONE);
    assert_int_equal(cvy_labels(g), cvy_labels(g)); /* made once */
    cvy_graph_free(g);
    cvy_graph_free(NULL);
}

static void test_names(void **state) {
    (void)state;
    struct cvy_graph *g = small_graph();
    cvy_value x = cvy_graph_find(g, "conv"), v;
    for (int i = 0; i < 100; i++) /* more than the index first holds */
        x = cvy_apply(g, "relu", NULL, &x, 1, NULL);
    assert_int_equal(cvy_graph_find(g, "relu#101"), x);
    struct cvy_desc desc = {CVY_F32, CVY_SHAPE(1)};
    assert_fails(cvy_graph_add_value(g, "conv", &desc, CVY_VALUE_PARAM, &v), CVY_ERR_USAGE, "is taken");
    static const char *const wrong[] = {"", "-", "a b", "a,b", "a(", "a@b", "a;", "x[0]", "a=b", "a\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(cvy_graph_add_value(g, wrong[i], &desc, CVY_VALUE_PARAM, &v), CVY_ERR_USAGE);
    cvy_graph_free(g);
}

static void test_host_inputs(void **state) {
    (void)state;
    struct cvy_graph *g = small_graph(), *other;
    struct cvy_desc one = {CVY_F32, CVY_SHAPE(1)}, three = {CVY_I64, CVY_SHAPE(3)};
    cvy_value divisor, again, rng;
    assert_ok(cvy_graph_host_input(g, "divisor", &one, false, &divisor));
    assert_ok(cvy_graph_host_input(g, "divisor", &one, false, &again));
    assert_int_equal(divisor, again);
    assert_ok(cvy_graph_host_input(g, "rng", &three, false, &rng));
    assert_fails(cvy_graph_host_input(g, "conv", &one, false, &again), CVY_ERR_USAGE, "taken");
    assert_fails(cvy_graph_host_input(g, "rng", &one, false, &again), CVY_ERR_USAGE, "taken");
    assert_ok(cvy_graph_rebatch(g, 1, &other)); /* [1] is no batch of 1 */
    assert_true(cvy_shape_equal(&cvy_graph_value(other, rng)->desc.shape, &three.shape));
    cvy_graph_free(other);
    assert_ok(cvy_graph_rebatch(g, 3, &other));
    assert_true(cvy_shape_equal(&cvy_graph_value(other, divisor)->desc.shape, &one.shape));
    cvy_graph_free(other);
    cvy_graph_free(g);
}

static void test_first_error_sticks(void **state) {
    (void)state;
    struct cvy_graph *g = small_graph();
    size_t n_nodes = g->nodes.n;
    cvy_value c = cvy_graph_find(g, "conv");
    assert_int_equal(cvy_apply(g, "rellu", NULL, &c, 1, NULL), CVY_NONE);
    assert_fails(cvy_graph_status(g), CVY_ERR_USAGE, "did you mean \"relu\"");
    assert_int_equal(cvy_apply(g, "relu", NULL, &c, 1, NULL), CVY_NONE);
    assert_int_equal(cvy_input(g, "other", 1, 1, 1), CVY_NONE);
    assert_int_equal(cvy_labels(g), CVY_NONE);
    cvy_output(g, "z", c);
    cvy_stage(g, 1);
    assert_int_equal(g->nodes.n, n_nodes);
    assert_int_equal(cvy_graph_output(g, "z"), CVY_NONE);
    assert_fails(cvy_graph_status(g), CVY_ERR_USAGE, "rellu");
    cvy_graph_free(g);
}

static void test_wrong_nodes(void **state) {
    (void)state;
    static const struct {
        const char *op, *attributes, *message;
        int n_in;
        cvy_value in[4];
    } wrong[] = {
        {"conv2d", "kernel=3", "2 to 3 inputs, not 1", 1, {0}},
        {"conv2d", "kernel=3", "2 to 3 inputs, not 4", 4, {0, 1, CVY_NONE, 0}},
        {"conv2d", "kernel=3", "lacks its input \"weight\"", 2, {0, CVY_NONE}},
        {"conv2d", "kernel=3", "not a value of this graph", 2, {0, 99}},
        {"conv2d", "kernel=5", "conv2d", 2, {0, 1}},
        {"conv2d", "kernel=-3", "kernel must lie between", 2, {0, 1}},
        {"conv2d", "kernle=3", "did you mean \"kernel\"", 2, {0, 1}},
        {"add", "", "add", 2, {0, 1}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct cvy_graph *g = small_graph();
        assert_int_equal(cvy_apply(g, wrong[i].op, "l", wrong[i].in, wrong[i].n_in, wrong[i].attributes),
                         CVY_NONE);
        assert_fails(cvy_graph_status(g), CVY_ERR_USAGE, wrong[i].message);
        cvy_graph_free(g);
    }
    struct cvy_graph *g = small_graph();
    cvy_stage(g, -1);
    assert_fails(cvy_graph_status(g), CVY_ERR_USAGE, "stages count from 0");
    cvy_graph_free(g);
}

static void test_several_outputs(void **state) {
    (void)state;
    struct cvy_graph *g = small_graph();
    cvy_stage(g, 3);
    cvy_value c = cvy_graph_find(g, "conv");
    cvy_value y = cvy_apply(g, "max_pool", "pool", &c, 1, "kernel=2");
    assert_int_equal(y, cvy_graph_find(g, "pool.y"));
    assert_int_equal(y + 1, cvy_graph_find(g, "pool.index"));
    assert_false(cvy_graph_value(g, y)->is_private);
    assert_true(cvy_graph_value(g, y + 1)->is_private);
    assert_int_equal(g->nodes.data[g->nodes.n - 1].stage, 3);
    y = cvy_apply(g, "max_pool", "pool", &c, 1, "kernel=2");
    assert_int_equal(y, cvy_graph_find(g, "pool#2.y"));
    assert_ok(cvy_graph_verify(g));
    cvy_graph_free(g);
}

/* An optimiser over two parameters; returns its node. */
static const struct cvy_node *add_update(struct cvy_graph *g) {
    cvy_value in[] = {
        root(g, CVY_VALUE_HYPER, "hyper", "f32[2]"),       root(g, CVY_VALUE_PARAM, "a", "f32[3]"),
        root(g, CVY_VALUE_BUFFER, "a.grad", "f32[3]"),     root(g, CVY_VALUE_STATE, "a.momentum", "f32[3]"),
        root(g, CVY_VALUE_PARAM, "b", "f32[4,5]"),         root(g, CVY_VALUE_BUFFER, "b.grad", "f32[4,5]"),
        root(g, CVY_VALUE_STATE, "b.momentum", "f32[4,5]")};
    struct cvy_node_spec spec = {.op = cvy_op_find("sgd"),
                                 .name = "sgd.0",
                                 .in = in,
                                 .n_in = 7,
                                 .phase = CVY_PHASE_UPDATE,
                                 .stage = -1};
    assert_ok(cvy_graph_add_node(g, &spec, NULL));
    return &g->nodes.data[g->nodes.n - 1];
}

static void test_update(void **state) {
    (void)state;
    struct cvy_graph *g = small_graph();
    const struct cvy_node *node = add_update(g);
    assert_int_equal(node->n_out, 4);
    assert_int_equal(node->out[0], cvy_graph_find(g, "a+"));
    assert_int_equal(node->out[3], cvy_graph_find(g, "b.momentum+"));
    assert_true(cvy_shape_equal(&cvy_graph_value(g, node->out[2])->desc.shape, &CVY_SHAPE(4, 5)));
    assert_ok(cvy_graph_verify(g));
    struct cvy_node_spec late = {
        .op = cvy_op_find("relu"), .in = &node->in[1], .n_in = 1, .phase = CVY_PHASE_UPDATE};
    assert_ok(cvy_graph_add_node(g, &late, NULL));
    assert_fails(cvy_graph_verify(g), CVY_ERR_FAILED, "whose memory holds a+");
    cvy_graph_free(g);
}

static void test_gradient_nodes(void **state) {
    (void)state;
    struct cvy_graph *g = small_graph();
    cvy_value c = cvy_graph_find(g, "conv"), out;
    struct cvy_node of = g->nodes.data[cvy_graph_value(g, cvy_graph_find(g, "relu"))->node];
    assert_ok(cvy_graph_add_grad(g, &of, "relu_backward", NULL, (cvy_value[]){c, of.out[0]}, 2, &out));
    const struct cvy_node *node = &g->nodes.data[g->nodes.n - 1];
    assert_string_equal(node->name, "relu'");
    assert_string_equal(cvy_graph_value(g, out)->name, "relu'");
    assert_int_equal(node->id, of.id);
    assert_int_equal(node->phase, CVY_PHASE_BACKWARD);
    assert_fails(cvy_graph_add_grad(g, &of, "no_such", NULL, &c, 1, &out), CVY_ERR_FAILED, "no_such");
    cvy_graph_free(g);
}

static void test_rebatch(void **state) {
    (void)state;
    struct cvy_graph *g = small_graph(), *other;
    add_update(g);
    g->nodes.data[0].algorithm = 7;
    assert_fails(cvy_graph_rebatch(g, 0, &other), CVY_ERR_USAGE, "at least one image");
    assert_ok(cvy_graph_rebatch(g, 5, &other));
    assert_ok(cvy_graph_verify(other));
    assert_int_equal(other->batch, 5);
    assert_int_equal(other->next_id, g->next_id);
    assert_int_equal(other->values.n, g->values.n);
    assert_int_equal(other->nodes.n, g->nodes.n);
    for (size_t v = 0; v < g->values.n; v++)
        assert_string_equal(g->values.data[v].name, other->values.data[v].name);
    assert_int_equal(other->nodes.data[0].algorithm, 7);
    assert_true(cvy_shape_equal(&cvy_graph_value(other, cvy_graph_output(other, "y"))->desc.shape,
                                &CVY_SHAPE(5, 4, 8, 8)));
    assert_true(cvy_shape_equal(&cvy_graph_value(other, cvy_graph_find(other, "conv.weight"))->desc.shape,
                                &CVY_SHAPE(4, 3, 3, 3)));
    cvy_graph_free(other);
    cvy_graph_free(g);
}

static void test_copy_pieces(void **state) {
    (void)state;
    struct cvy_graph *g = small_graph(), *to;
    cvy_value *map;
    assert_ok(cvy_graph_copy_roots(g, &to, &map));
    assert_int_equal(to->values.n, 2);
    assert_int_equal(map[cvy_graph_find(g, "conv")], CVY_NONE);
    for (size_t n = 0; n < g->nodes.n; n++)
        assert_ok(cvy_graph_copy_node(to, g, &g->nodes.data[n], map));
    assert_ok(cvy_graph_verify(to));
    assert_int_equal(map[cvy_graph_find(g, "add")], cvy_graph_find(to, "add"));
    assert_int_equal(to->nodes.data[2].id, g->nodes.data[2].id);
    free(map);
    cvy_graph_free(to);
    cvy_graph_free(g);
}

/* Each of these breaks one invariant of a sound graph. */
static void break_producer(struct cvy_graph *g) { g->values.data[cvy_graph_find(g, "conv")].node = 1; }
static void break_root(struct cvy_graph *g) { g->values.data[0].node = 0; }
static void break_order(struct cvy_graph *g) { g->nodes.data[0].in[0] = cvy_graph_find(g, "add"); }
static void break_phase(struct cvy_graph *g) { g->nodes.data[0].phase = CVY_PHASE_BACKWARD; }
static void break_shape(struct cvy_graph *g) {
    g->values.data[cvy_graph_find(g, "relu")].desc.shape.dim[1] = 5;
}
static void break_type(struct cvy_graph *g) {
    g->values.data[cvy_graph_find(g, "relu")].desc.dtype = CVY_F64;
}
static void break_bucket(struct cvy_graph *g) { g->nodes.data[0].bucket = 0; }
static void break_output(struct cvy_graph *g) { g->outputs.data[0].value = 99; }
static void break_batch(struct cvy_graph *g) { g->batch = 3; }
static void break_attrs(struct cvy_graph *g) {
    memset(g->nodes.data[0].attrs, 0, g->nodes.data[0].op->attrs_size);
}
static void break_input(struct cvy_graph *g) { g->nodes.data[1].in[0] = 99; }
static void break_name(struct cvy_graph *g) { g->values.data[1].name = "relu"; }
static void add_sum(struct cvy_graph *g, struct cvy_reducible r) {
    assert_ok(cvy_vec_push(&g->reducibles, r));
}
static void break_sum_value(struct cvy_graph *g) {
    add_sum(g, (struct cvy_reducible){0, CVY_NONE, CVY_REDUCE_LOSS, -1});
}
static void break_sum_bucket(struct cvy_graph *g) {
    add_sum(g, (struct cvy_reducible){cvy_graph_find(g, "add"), CVY_NONE, CVY_REDUCE_LOSS, 0});
}
static void break_sum_target(struct cvy_graph *g) {
    add_sum(g, (struct cvy_reducible){cvy_graph_find(g, "add"), CVY_NONE, CVY_REDUCE_GRADIENT, -1});
}
static void break_sum_shape(struct cvy_graph *g) {
    add_sum(g, (struct cvy_reducible){cvy_graph_find(g, "add"), cvy_graph_find(g, "conv.weight"),
                                      CVY_REDUCE_GRADIENT, -1});
}

static void test_verifier(void **state) {
    (void)state;
    static const struct {
        void (*apply)(struct cvy_graph *g);
        const char *message;
    } breaks[] = {
        {break_producer, "not what its producer"},
        {break_root, "is a root but has a producer"},
        {break_order, "before it is made"},
        {break_phase, "made in a later phase"},
        {break_shape, "shape"},
        {break_type, "has not the shape"},
        {break_bucket, "waits for bucket 0 of 0"},
        {break_output, "output y is no value"},
        {break_batch, "should be an input with 3"},
        {break_attrs, "must lie between"},
        {break_input, "does not exist"},
        {break_name, "does not lead to its value"},
        {break_sum_value, "not made in a shard"},
        {break_sum_bucket, "lies in bucket 0 of 0"},
        {break_sum_target, "for no target"},
        {break_sum_shape, "not shaped as a gradient"},
    };
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        struct cvy_graph *g = small_graph();
        breaks[i].apply(g);
        cvy_status status = cvy_graph_verify(g);
        if (status == CVY_OK || !strstr(cvy_error(), breaks[i].message))
            fail_msg("break %zu: status %d, '%s' without '%s'", i, (int)status, cvy_error(),
                     breaks[i].message);
        cvy_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build),       cmocka_unit_test(test_names),
        cmocka_unit_test(test_host_inputs), cmocka_unit_test(test_first_error_sticks),
        cmocka_unit_test(test_wrong_nodes), cmocka_unit_test(test_several_outputs),
        cmocka_unit_test(test_update),      cmocka_unit_test(test_gradient_nodes),
        cmocka_unit_test(test_rebatch),     cmocka_unit_test(test_copy_pieces),
        cmocka_unit_test(test_verifier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
