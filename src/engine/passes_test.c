/* Passes on real models: golden texts of a small graph, and for every model a shadow memory that proves the slot
   plan: each operator finds in its inputs' bytes what their makers put there. */
#include "cvy_test.h"
#include "engine/plan.h"
#include "models/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cvy_graph *small_graph(void) {
    cvy_graph *g;
    assert_ok(cvy_graph_new(&g));
    cvy_value x = cvy_input(g, "images", 3, 8, 8), labels = cvy_labels(g);
    cvy_value a = cvy_conv2d(
        g, x, &(cvy_conv2d_args){.name = "a", .out_channels = 4, .kernel = 3, .padding = 1, .no_bias = true});
    a = cvy_relu(g, cvy_batch_norm(g, a, &(cvy_batch_norm_args){.name = "an"}));
    cvy_value b = cvy_conv2d(
        g, a, &(cvy_conv2d_args){.name = "b", .out_channels = 4, .kernel = 3, .padding = 1, .no_bias = true});
    b = cvy_relu(g, cvy_add(g, cvy_batch_norm(g, b, &(cvy_batch_norm_args){.name = "bn"}), a));
    b = cvy_flatten(g, cvy_adaptive_avg_pool(g, b, 1, 1));
    cvy_value logits = cvy_linear(g, b, &(cvy_linear_args){.name = "fc", .out_features = 5});
    cvy_output(g, "logits", logits);
    cvy_cross_entropy(g, logits, labels, 0);
    assert_ok(cvy_graph_status(g));
    return g;
}

/* CVY_UPDATE_GOLDEN=1 writes the file anew; look at the difference before committing it. */
static void check_golden(const char *path, const char *text) {
    char *golden = NULL;
    size_t n;
    if (getenv("CVY_UPDATE_GOLDEN")) {
        assert_ok(cvy_write_file(path, text, strlen(text)));
        return;
    }
    assert_ok(cvy_read_file(path, 1 << 20, &golden, &n));
    if (strcmp(golden, text) != 0)
        fail_msg("%s differs from what the pass makes now:\n%s", path, text);
    free(golden);
}

static cvy_plan *make_plan(const cvy_graph *g, const char *backend) {
    cvy_plan *plan = NULL;
    cvy_plan_options options = {.devices = "cpu:0-1",
                                .backend = backend,
                                .batch_size = 6,
                                .shards = 3,
                                .threads_per_device = 1,
                                .optimizer = "sgd",
                                .optimizer_attributes = "momentum=0.9",
                                .first_bucket_mb = 0.0005,
                                .bucket_mb = 0.0005};
    assert_ok(cvy_plan_new(g, &options, &plan));
    return plan;
}

static void golden_texts(void **state) {
    (void)state;
    static const char *const passes[] = {"fuse", "autodiff", "choose", "program"};
    cvy_graph *g = small_graph();
    cvy_plan *plan = make_plan(g, "reference");
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        char path[64], *text;
        snprintf(path, sizeof path, "tests/golden/explain/%s.txt", passes[i]);
        assert_ok(cvy_plan_explain(plan, passes[i], &text));
        check_golden(path, text);
        free(text);
    }
    char *text = NULL;
    assert_fails(cvy_plan_explain(plan, "fusion", &text), CVY_ERR_USAGE, "fuse");
    cvy_plan_free(plan);
    cvy_graph_free(g);
}

/* Fusion changes how much is computed at once, never what: both graphs have the same parameters and outputs. */
static void fusion_is_complete(void **state) {
    (void)state;
    cvy_graph *g = small_graph();
    cvy_plan *plan = make_plan(g, "reference");
    int n_norms = 0;
    for (size_t i = 0; i < plan->fused->nodes.n; i++) {
        const char *op = plan->fused->nodes.data[i].op->name;
        assert_string_not_equal(op, "relu");
        assert_string_not_equal(op, "add");
        n_norms += strcmp(op, "batch_norm") == 0;
    }
    assert_int_equal(n_norms, 2);
    cvy_plan_free(plan);
    cvy_graph_free(g);
}

/* ---- the shadow memory ------------------------------------------------------------------------------- */

struct shadow {
    const struct cvy_graph *g;
    const struct cvy_slot_plan *plan;
    cvy_value *owner; /* per 64 bytes of the slot */
};

/* Views are their input under another name. */
static cvy_value viewed(const struct cvy_graph *g, cvy_value v) {
    while (g->values.data[v].node >= 0 && (g->nodes.data[g->values.data[v].node].op->flags & CVY_OP_VIEW))
        v = g->nodes.data[g->values.data[v].node].in[0];
    return v;
}

static void write_value(struct shadow *s, cvy_value v) {
    if (s->plan->offset[v] == SIZE_MAX)
        return;
    assert_true(s->plan->offset[v] + s->plan->n_bytes[v] <= s->plan->slot_bytes);
    for (size_t i = 0; i < s->plan->n_bytes[v] / CVY_ALIGN; i++)
        s->owner[s->plan->offset[v] / CVY_ALIGN + i] = v;
}

static void read_value(const struct shadow *s, cvy_value v, const struct cvy_node *node) {
    v = v == CVY_NONE ? v : viewed(s->g, v);
    if (v == CVY_NONE || s->plan->offset[v] == SIZE_MAX)
        return;
    for (size_t i = 0; i < s->plan->n_bytes[v] / CVY_ALIGN; i++) {
        cvy_value owner = s->owner[s->plan->offset[v] / CVY_ALIGN + i];
        if (owner != v)
            fail_msg("%s reads %s, but %s lies there", node->name, s->g->values.data[v].name,
                     owner == CVY_NONE ? "nothing" : s->g->values.data[owner].name);
    }
}

static void run_phase(struct shadow *s, enum cvy_phase phase) {
    for (size_t i = 0; i < s->g->nodes.n; i++) {
        const struct cvy_node *node = &s->g->nodes.data[i];
        if (node->phase != phase)
            continue;
        for (int k = 0; k < node->n_in; k++)
            read_value(s, node->in[k], node);
        for (int k = 0; k < node->n_out && !(node->op->flags & CVY_OP_VIEW); k++)
            write_value(s, node->out[k]);
    }
}

/* Runs in the worker: layouts are the device's. */
static cvy_status shadow_task(struct cvy_worker *worker, void *argument) {
    const struct cvy_plan *plan = argument;
    struct cvy_choose_options options = {worker->device, plan->rule_batch, true};
    struct cvy_graph *g = NULL;
    struct cvy_slot_plan slot;
    if (worker->rank != 0)
        return CVY_OK;
    CVY_TRY(cvy_pass_choose(plan->train, &options, &worker->masters, &g));
    CVY_TRY(cvy_graph_verify(g));
    CVY_TRY(cvy_pass_memory(g, worker->device, 0, &slot));
    struct shadow s = {.g = g, .plan = &slot};
    CVY_TRY(CVY_ALLOC(s.owner, slot.slot_bytes / CVY_ALIGN));
    for (size_t i = 0; i < slot.slot_bytes / CVY_ALIGN; i++)
        s.owner[i] = CVY_NONE;
    for (size_t v = 0; v < g->values.n; v++) {
        if (g->values.data[v].kind == CVY_VALUE_INPUT)
            write_value(&s, (cvy_value)v);
    }
    run_phase(&s, CVY_PHASE_FORWARD);
    run_phase(&s, CVY_PHASE_BACKWARD);
    free(s.owner);
    cvy_slot_plan_free(&slot);
    cvy_graph_free(g);
    return CVY_OK;
}

static void slot_plans_hold(void **state) {
    (void)state;
    size_t n;
    const struct cvy_model *const *models = cvy_model_table(&n);
    for (size_t i = 0; i < n; i++) {
        cvy_graph *g;
        if (!models[i]->is_classifier || models[i]->height > 64)
            continue;
        assert_ok(cvy_graph_new(&g));
        cvy_value x = cvy_input(g, "images", models[i]->channels, models[i]->height, models[i]->width);
        cvy_value logits = cvy_model(g, models[i]->name, x, 10);
        cvy_output(g, "logits", logits);
        cvy_cross_entropy(g, logits, cvy_labels(g), 0);
        cvy_plan *plan = make_plan(g, "cpu");
        assert_ok(cvy_team_run(&plan->team, shadow_task, plan));
        cvy_plan_free(plan);
        cvy_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_texts),
        cmocka_unit_test(fusion_is_complete),
        cmocka_unit_test(slot_plans_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
