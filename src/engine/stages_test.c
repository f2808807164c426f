/* The stage pass: what cvy_stage said is kept or refused; else the cut is the best there is. */
#include "cvy_test.h"
#include "pass/pass.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 16 };

static const struct cvy_stage_options balance = {.conv_algo =
                                                     "auto"}; /* formulas alone, no limit of memory */

/* The training graph's forward part, as the plan gives it to the pass. */
static struct cvy_graph *forward_of(cvy_graph *built) {
    static const char *const outputs[] = {"loss"};
    struct cvy_graph *out = NULL;
    assert_ok(cvy_graph_status(built));
    assert_ok(cvy_pass_mode(built, true, outputs, 1, &out));
    cvy_graph_free(built);
    return out;
}

static cvy_value conv(cvy_graph *g, cvy_value x, const char *name, int64_t channels) {
    return cvy_conv2d(g, x,
                      &(cvy_conv2d_args){.name = name, .out_channels = channels, .kernel = 3, .padding = 1});
}

static void finish(cvy_graph *g, cvy_value x) {
    cvy_value logits = cvy_linear(g, cvy_flatten(g, x), &(cvy_linear_args){.name = "fc", .out_features = 4});
    cvy_cross_entropy(g, logits, cvy_labels(g), 0);
}

/* A chain of n convolutions of random widths. */
static struct cvy_graph *random_chain(uint64_t seed, int n) {
    cvy_graph *g;
    assert_ok(cvy_graph_new(&g));
    cvy_value x = cvy_input(g, "images", 3, 8, 8);
    for (int k = 0; k < n; k++) {
        char name[8];
        snprintf(name, sizeof name, "c%d", k);
        x = conv(g, x, name,
                 1 + (int64_t)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 59));
    }
    finish(g, x);
    return forward_of(g);
}

/* ---- balance --------------------------------------------------------------------------------------- */

/* The slowest stage of the best cut of nodes first .. n-1 into k stages, by trying all. */
static double best_cut(const double *time, int first, int n, int k) {
    double best = DBL_MAX, head = 0;
    if (k == 1) {
        for (int i = first; i < n; i++)
            head += time[i];
        return head;
    }
    for (int i = first; i + k <= n; i++) {
        head += time[i];
        double rest = best_cut(time, i + 1, n, k - 1);
        double slowest = head > rest ? head : rest;
        best = slowest < best ? slowest : best;
    }
    return best;
}

static void check_balance(struct cvy_graph *g, int32_t n_stages) {
    double time[MAX_NODES], stage_time[MAX_NODES] = {0}, slowest = 0;
    int n = (int)g->nodes.n;
    int32_t now = 0;
    struct cvy_graph *whole;
    assert_in_range(n, 1, MAX_NODES);
    assert_ok(cvy_graph_rebatch(g, g->batch, &whole));
    assert_ok(cvy_pass_autodiff(whole));
    assert_ok(cvy_pass_stages(g, n_stages, &balance));
    for (int i = 0; i < n; i++) {
        const struct cvy_node *node = &g->nodes.data[i];
        time[i] = cvy_layer_time(whole, &whole->nodes.data[i], &balance);
        assert_true(time[i] >= 0 &&
                    (node->stage == now || node->stage == now + 1)); /* in order, none empty */
        now = node->stage;
        stage_time[now] += time[i];
    }
    assert_int_equal(now, n_stages - 1);
    for (int32_t s = 0; s < n_stages; s++)
        slowest = stage_time[s] > slowest ? stage_time[s] : slowest;
    cvy_graph_free(whole);
    double best = best_cut(time, 0, n, n_stages);
    assert_true(slowest <= best * (1 + 1e-9) && best <= slowest * (1 + 1e-9));
}

static void test_balance_is_optimal(void **state) {
    (void)state;
    for (int k = 0; k < 60; k++) {
        for (int32_t n_stages = 1; n_stages <= 5; n_stages++) {
            struct cvy_graph *g = random_chain((uint64_t)k + 1, 2 + k % 9);
            check_balance(g, n_stages);
            cvy_graph_free(g);
        }
    }
}

static void test_a_stage_for_each_operator(void **state) {
    (void)state;
    struct cvy_graph *g = random_chain(1, 4);
    int32_t n = (int32_t)g->nodes.n;
    char text[64];
    snprintf(text, sizeof text, "take at most %d devices", n);
    assert_fails(cvy_pass_stages(g, n + 1, &balance), CVY_ERR_USAGE, text);
    assert_ok(cvy_pass_stages(g, n, &balance));
    for (int32_t i = 0; i < n; i++)
        assert_int_equal(g->nodes.data[i].stage, i);
    cvy_graph_free(g);
}

/* A layer's time has its backward pass in it, which costs about twice the forward one. */
static void test_layer_times(void **state) {
    (void)state;
    struct cvy_graph *g = random_chain(3, 4), *whole;
    assert_ok(cvy_graph_rebatch(g, g->batch, &whole));
    assert_ok(cvy_pass_autodiff(whole));
    for (size_t i = 1; i < 4; i++) {
        double forward = cvy_layer_time(g, &g->nodes.data[i], &balance);
        double both = cvy_layer_time(whole, &whole->nodes.data[i], &balance);
        assert_true(forward > 0 && both > 2 * forward && both < 4 * forward);
    }
    cvy_graph_free(whole);
    cvy_graph_free(g);
}

/* ---- what the graph says ------------------------------------------------------------------------------ */

static int32_t stage_of(const struct cvy_graph *g, const char *layer) {
    for (size_t i = 0; i < g->nodes.n; i++) {
        if (strcmp(g->nodes.data[i].name, layer) == 0)
            return g->nodes.data[i].stage;
    }
    fail_msg("no layer %s", layer);
    return -1;
}

/* Three convolutions a, b, c in the given stages; the rest follows c. b's weight may be a's. */
static struct cvy_graph *said(int a, int b, int c, bool is_shared) {
    cvy_graph *g;
    assert_ok(cvy_graph_new(&g));
    cvy_value x = cvy_input(g, "images", 3, 8, 8);
    if (a >= 0)
        cvy_stage(g, a);
    x = conv(g, x, "a", 3);
    cvy_stage(g, b);
    const cvy_value shared[] = {x, cvy_graph_find(g, "a.weight")};
    x = is_shared ? cvy_apply(g, "conv2d", "b", shared, 2, "kernel=3x3 padding=1x1") : conv(g, x, "b", 3);
    cvy_stage(g, c);
    finish(g, conv(g, x, "c", 3));
    return forward_of(g);
}

static void test_said_is_kept(void **state) {
    (void)state;
    struct cvy_graph *g = said(0, 0, 1, false);
    assert_ok(cvy_pass_stages(g, 2, &balance));
    assert_int_equal(stage_of(g, "a"), 0);
    assert_int_equal(stage_of(g, "b"), 0);
    assert_int_equal(stage_of(g, "c"), 1);
    assert_int_equal(stage_of(g, "fc"), 1);
    cvy_graph_free(g);
    g = said(-1, 1, 2, false); /* what comes before the first word is of the first stage */
    assert_ok(cvy_pass_stages(g, 3, &balance));
    assert_int_equal(stage_of(g, "a"), 0);
    assert_int_equal(stage_of(g, "c"), 2);
    cvy_graph_free(g);
    g = said(0, 1, 2, false); /* where there is one stage, nothing is looked at */
    assert_ok(cvy_pass_stages(g, 1, &balance));
    assert_int_equal(stage_of(g, "c"), 0);
    cvy_graph_free(g);
}

static void test_said_is_refused(void **state) {
    (void)state;
    struct cvy_graph *g = said(0, 1, 2, false);
    assert_fails(cvy_pass_stages(g, 2, &balance), CVY_ERR_USAGE,
                 "built in 3 stages, the mesh has 2: take 3 devices");
    assert_fails(cvy_pass_stages(g, 4, &balance), CVY_ERR_USAGE,
                 "built in 3 stages, the mesh has 4: take 3 devices");
    cvy_graph_free(g);
    g = said(1, 0, 1, false);
    assert_fails(cvy_pass_stages(g, 2, &balance), CVY_ERR_USAGE,
                 "layer b of stage 0 reads what layer a of stage 1 makes");
    cvy_graph_free(g);
}

static cvy_status train(struct cvy_graph *g) {
    const struct cvy_op *sgd = cvy_op_find("sgd");
    void *attrs = calloc(1, sgd->attrs_size);
    assert_non_null(attrs);
    cvy_attrs_default(sgd, attrs);
    struct cvy_update_options options = {
        .optimizer = sgd, .attrs = {attrs}, .first_bucket_bytes = 1 << 20, .bucket_bytes = 1 << 20};
    assert_ok(cvy_pass_stages(g, 2, &balance));
    assert_ok(cvy_pass_autodiff(g));
    cvy_status status = cvy_pass_update(g, &options);
    free(attrs);
    return status;
}

static void test_a_parameter_lives_on_one_stage(void **state) {
    (void)state;
    struct cvy_graph *g = said(0, 1, 1, true);
    assert_fails(train(g), CVY_ERR_USAGE, "a.weight is used by layers of stages");
    cvy_graph_free(g);
    g = said(0, 0, 1, true);
    assert_ok(train(g));
    assert_ok(cvy_graph_verify(g));
    cvy_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_balance_is_optimal),
        cmocka_unit_test(test_layer_times),
        cmocka_unit_test(test_a_stage_for_each_operator),
        cmocka_unit_test(test_said_is_kept),
        cmocka_unit_test(test_said_is_refused),
        cmocka_unit_test(test_a_parameter_lives_on_one_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
