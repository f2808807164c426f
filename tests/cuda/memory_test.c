/* The memory that a plan says a GPU needs is what training takes there: with so much it works, and with a byte less it
   does not. */
#include "cuda/cuda_orders.h"

#include "engine/plan.h"

/* For what is opened next. */
static void give_memory(size_t n_bytes) {
    char text[32];
    snprintf(text, sizeof text, "%zu", n_bytes);
    assert_int_equal(setenv("FAKECUDA_MEMORY", text, 1), 0);
}

static size_t planned(const cvy_plan_options *options) {
    cvy_graph *g = make_graph();
    cvy_plan *plan;
    assert_ok(cvy_plan_new(g, options, &plan));
    const size_t n_bytes = cvy_plan_bytes(plan);
    cvy_plan_free(plan);
    cvy_graph_free(g);
    return n_bytes;
}

/* Two updates and an evaluation on GPUs of so much memory. */
static cvy_status work_in(size_t n_bytes, const cvy_plan_options *options) {
    cvy_graph *g = make_graph();
    cvy_plan *plan = NULL;
    cvy_session *session = NULL;
    cvy_status status = CVY_OK;
    struct data data;
    float losses[BATCH];
    give_memory(n_bytes);
    draw(&data, 0);
    cvy_batch batch = batch_of(&data, BATCH);
    CVY_TRY_OUT(cvy_plan_new(g, options, &plan));
    CVY_TRY_OUT(cvy_session_new(plan, &session));
    for (int i = 0; i < 2; i++)
        CVY_TRY_OUT(cvy_step(session, &batch));
    CVY_TRY_OUT(cvy_evaluate(session, &batch, losses, NULL, NULL));
out:
    cvy_session_free(session);
    cvy_plan_free(plan);
    cvy_graph_free(g);
    unsetenv("FAKECUDA_MEMORY");
    return status;
}

static void test_one_gpu(void **state) {
    (void)state;
    for (int shards = 1; shards <= SHARDS; shards++) {
        cvy_plan_options options = options_of(&setups[0], "cuda", 1);
        options.shards = shards;
        const size_t n_bytes = planned(&options);
        assert_ok(work_in(n_bytes, &options));
        assert_fails(work_in(n_bytes - 1, &options), CVY_ERR_MEMORY, "use a smaller batch or more shards");
    }
}

static void test_the_limit_counts_images(void **state) {
    (void)state;
    cvy_plan_options options = options_of(&setups[0], "cuda", 1);
    cvy_graph *g = make_graph();
    cvy_plan *plan = NULL;
    char *text;
    options.device_memory = (int64_t)planned(&options);
    assert_ok(cvy_plan_new(g, &options, &plan));
    assert_true(cvy_input_bytes(&plan->team.workers[0]) >=
                2 * (BATCH / SHARDS + 1) * CHANNELS * SIZE * SIZE * sizeof(float));
    assert_ok(cvy_plan_explain(plan, NULL, &text));
    assert_non_null(strstr(text, "images as they come"));
    free(text);
    cvy_plan_free(plan);
    plan = NULL;
    options.device_memory--;
    assert_fails(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE, "strategy single needs ");
    cvy_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_gpu),
        cmocka_unit_test(test_the_limit_counts_images),
    };
    return has_plugin() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
