/* Groups of weight decay: each parameter is updated as if the whole network had the decay of its group. */
#include "engine/session_matrix.h"

#include <stdio.h>
#include <string.h>

static const char *const params[] = {"a.weight", "an.weight", "an.bias", "b.weight",
                                     "b.bias",   "fc.weight", "fc.bias"};
enum { N_PARAMS = sizeof params / sizeof *params, MAX_FLOATS = 4096 };
typedef float values[N_PARAMS][MAX_FLOATS];

/* One update from parameters that are nowhere 0. */
static void make_step(const char *attributes, const struct setup *setup, values out) {
    cvy_plan_options options = options_of(setup, "cpu", 1);
    struct data data;
    options.optimizer_attributes = attributes;
    struct run run = open_run(&options);
    memset(out, 0, sizeof(values));
    for (int i = 0; i < N_PARAMS; i++) {
        assert_ok(cvy_session_read(run.session, params[i], out[i]));
        for (int k = 0; k < MAX_FLOATS; k++)
            out[i][k] += 0.25f;
        assert_ok(cvy_session_write(run.session, params[i], out[i]));
    }
    assert_ok(cvy_session_spread(run.session));
    draw(&data, 0);
    cvy_batch batch = batch_of(&data, BATCH);
    assert_ok(cvy_step(run.session, &batch));
    for (int i = 0; i < N_PARAMS; i++)
        assert_ok(cvy_session_read(run.session, params[i], out[i]));
    close_run(&run);
}

/* decay[i]: a letter for the decay that parameter i is expected to have. */
static void check(const char *attributes, const char *decay) {
    static values got, want;
    make_step(attributes, &setups[0], got);
    for (const char *letter = "abc"; *letter; letter++) {
        char plain[40];
        snprintf(plain, sizeof plain, "weight_decay=%g", *letter == 'a' ? 0 : *letter == 'b' ? 0.1 : 0.3);
        make_step(plain, &setups[0], want);
        for (int i = 0; i < N_PARAMS; i++) {
            bool is_same = memcmp(got[i], want[i], sizeof got[i]) == 0;
            if (is_same != (decay[i] == *letter))
                fail_msg("%s: %s is%s as with %s", attributes, params[i], is_same ? "" : " not", plain);
        }
    }
    static const struct setup pipeline = {"cpu:0-1", "pipeline", false, true, "1f1b", NULL};
    make_step(attributes, &pipeline, want);
    assert_memory_equal(got, want, sizeof got);
}

static void test_groups(void **state) {
    (void)state;
    check("weight_decay=0.1", "bbbbbbb");
    check("weight_decay=0.1 norm_weight_decay=0", "baabbbb");
    check("bias_weight_decay=0 weight_decay=0.1", "bbababa");
    check("weight_decay=0.1 norm_weight_decay=0 bias_weight_decay=0.3", "bacbcbc");
}

static void test_refused(void **state) {
    (void)state;
    cvy_graph *g = make_graph();
    cvy_plan *plan;
    cvy_plan_options options = options_of(&setups[0], "cpu", 1);
    options.optimizer_attributes = "norm_weight_decay=-1";
    assert_fails(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE, "weight_decay");
    options.optimizer_attributes = "norm_momentum=0.5";
    assert_fails(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE, "norm_momentum");
    cvy_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
