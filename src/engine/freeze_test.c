/* Frozen parameters keep their values and have no state; the others get the gradients that they have without
   freezing; and the number of devices and the strategy do not change the bits. */
#include "engine/session_matrix.h"

#include <stdlib.h>
#include <string.h>

static const char *const params[] = {"a.weight",  "an.weight", "an.bias",   "b.weight", "b.bias",
                                     "bn.weight", "bn.bias",   "fc.weight", "fc.bias"};
enum { N_PARAMS = sizeof params / sizeof *params, MAX_FLOATS = 4096 };

struct step {
    float before[N_PARAMS][MAX_FLOATS], after[N_PARAMS][MAX_FLOATS], mean[16];
};

/* One update; every parameter before and after it, and a running mean after it. */
static void make_step(const char *freeze, bool sync_bn, struct step *out) {
    cvy_plan_options options = options_of(&setups[0], "cpu", 1);
    struct data data;
    options.freeze = freeze;
    options.sync_bn = sync_bn;
    struct run run = open_run(&options);
    for (int i = 0; i < N_PARAMS; i++)
        assert_ok(cvy_session_read(run.session, params[i], out->before[i]));
    draw(&data, 0);
    cvy_batch batch = batch_of(&data, BATCH);
    assert_ok(cvy_step(run.session, &batch));
    for (int i = 0; i < N_PARAMS; i++)
        assert_ok(cvy_session_read(run.session, params[i], out->after[i]));
    assert_ok(cvy_session_read(run.session, "an.running_mean", out->mean));
    for (int i = 0; i < N_PARAMS; i++) {
        bool is_kept = memcmp(out->before[i], out->after[i], sizeof out->before[i]) == 0;
        bool has_state = false;
        for (size_t k = 0; k < run.session->stored.n; k++) {
            const struct cvy_stored *s = run.session->stored.data[k];
            has_state |= s->kind == CVY_VALUE_STATE && strncmp(s->name, params[i], strlen(params[i])) == 0;
        }
        assert_true(is_kept == !has_state);
    }
    close_run(&run);
}

static void check_against_free(const char *freeze, unsigned frozen, bool sync_bn) {
    static struct step plain, some;
    make_step(NULL, sync_bn, &plain);
    make_step(freeze, sync_bn, &some);
    for (int i = 0; i < N_PARAMS; i++) {
        const float *want = frozen >> i & 1 ? plain.before[i] : plain.after[i];
        assert_memory_equal(some.after[i], want, sizeof some.after[i]);
        assert_memory_not_equal(plain.before[i], plain.after[i], sizeof some.after[i]);
    }
    assert_memory_equal(some.mean, plain.mean, sizeof plain.mean); /* it goes on */
}

static void test_others_are_as_without(void **state) {
    (void)state;
    for (int sync_bn = 0; sync_bn < 2; sync_bn++) {
        check_against_free("a.*,an.*", 0x007, sync_bn);
        check_against_free("fc.*", 0x180, sync_bn);
        check_against_free("*.weight", 0x0ab, sync_bn);
        check_against_free("b?.*", 0x060, sync_bn);
        check_against_free("[ab]*", 0x07f, sync_bn);
    }
}

static void test_same_bits(void **state) {
    (void)state;
    static const char *const freezes[] = {"a.*,an.*", "[ab]*", "fc.*,an.bias"};
    static const struct setup few[] = {
        {"cpu:0-1", "ddp", false, false, NULL, NULL},
        {"cpu:0-2", "ddp", true, false, NULL, NULL},
        {"cpu:0-1", "dp", false, true, NULL, NULL},
        {"cpu:0-1", "mp", false, false, NULL, NULL},
        {"cpu:0-1", "pipeline", false, false, "gpipe", NULL},
        {"cpu:0-2", "pipeline", false, true, "1f1b", NULL},
        {"cpu:0-3", "hybrid", true, false, "1f1b", "data=2,pipe=2"},
    };
    for (size_t f = 0; f < sizeof freezes / sizeof *freezes; f++) {
        double loss;
        cvy_plan_options options = options_of(&setups[0], "cpu", 1);
        options.freeze = freezes[f];
        options.accumulate = 2;
        uint64_t hash = train(&options, false, false, &loss);
        for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
            options = options_of(&few[i], "cpu", 1);
            options.freeze = freezes[f];
            options.accumulate = 2;
            check_bits(&few[i], &options, hash, loss);
        }
    }
}

static void test_async_same_bits(void **state) {
    (void)state;
    double loss;
    cvy_plan_options options = options_of(&setups[0], "cpu", 1);
    options.freeze = "a.*,bn.*";
    uint64_t hash = train(&options, false, false, &loss);
    static const struct setup setup = {"async:0-1", "pipeline", false, false, "1f1b", NULL};
    options = options_of(&setup, NULL, 1);
    options.freeze = "a.*,bn.*";
    check_bits(&setup, &options, hash, loss);
}

static void test_refused(void **state) {
    (void)state;
    cvy_graph *g = make_graph();
    cvy_plan *plan;
    cvy_plan_options options = options_of(&setups[0], "cpu", 1);
    options.freeze = "a.*,nix*";
    assert_fails(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE, "'nix*': no parameter");
    options.freeze = "*";
    assert_fails(cvy_plan_new(g, &options, &plan), CVY_ERR_USAGE, "nothing is left to train");
    cvy_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others_are_as_without),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_async_same_bits),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
