/* ddp and dp against what people use instead, PyTorch's DistributedDataParallel (two gloo processes) and the semantics
   of nn.DataParallel: tests/golden/models/NAME.ddp and NAME.dp, made by tools/make_golden_parallel.py.
     ddp   20 steps on 2 devices: all parameters together, and all running statistics together (against the mean of
           the ranks' own), within 1e-3
     dp    the loss and the gradients of a step whose batch-norm sees chunks; of a batch that does not divide, where
           a net without batch-norm does not mind where the cuts are; outputs gathered in the batch's order */
#include "golden_net.h"

enum { BATCH = 8 };

struct variant {
    const struct net *net;
    const char *strategy, *devices, *backend, *conv_algo;
    int64_t shards, batch;
};

static void name_file(const struct variant *v, char out[64]) {
    snprintf(out, 64, "%s.%s", v->net->name, v->strategy);
}

static cvy_plan_options options_of(const struct variant *v) {
    return (cvy_plan_options){.strategy = v->strategy,
                              .devices = v->devices,
                              .backend = v->backend,
                              .conv_algo = v->conv_algo,
                              .shards = v->shards,
                              .batch_size = v->batch};
}

static void test_ddp(void **state) {
    const struct variant *v = *state;
    struct fixture f = {.net = v->net};
    char file[64];
    name_file(v, file);
    open_golden(&f, file);
    open_session(&f, options_of(v));
    for (int64_t step = 0; step < N_STEPS; step++) {
        cvy_batch batch = batch_at(&f, step * v->batch % f.n_images, v->batch);
        assert_ok(cvy_step(f.session, &batch));
    }
    check_weights(&f);
    close_session(&f);
}

static void test_dp_gradients(void **state) {
    const struct variant *v = *state;
    struct fixture f = {.net = v->net};
    char file[64];
    name_file(v, file);
    open_golden(&f, file);
    open_session(&f, options_of(v));
    check_loss_and_gradients(&f, v->batch);
    close_session(&f);
}

/* 32 images as 10, 10, 10, 2 on 4 devices: shards of 2 and 3 images, then of one and of none. */
static void test_dp_gathers(void **state) {
    const struct variant *v = *state;
    struct fixture f = {.net = v->net};
    open_golden(&f, v->net->name);
    open_session(&f, options_of(v));
    check_logits(&f, v->batch);
    close_session(&f);
}

#define DDP(backend, algo) \
    { &RESNET18, "ddp", "cpu:0-1", (backend), (algo), 2, BATCH }
#define DP_EVEN(backend, algo) \
    { &RESNET18, "dp", "cpu:0-1", (backend), (algo), 2, BATCH }
static struct variant ddp[] = {DDP("reference", NULL), DDP("cpu", "direct"), DDP("cpu", "winograd")};
static struct variant dp[] = {DP_EVEN("reference", NULL),
                              DP_EVEN("cpu", "direct"),
                              DP_EVEN("cpu", "winograd"),
                              {&LENET5, "dp", "cpu:0-3", "reference", NULL, 4, 10},
                              {&LENET5, "dp", "cpu:0-3", "cpu", "auto", 4, 10}};
static struct variant gather[] = {{&LENET5, "dp", "cpu:0-3", "cpu", "auto", 4, 10},
                                  {&RESNET18, "dp", "cpu:0-3", "cpu", "auto", 4, 10},
                                  {&RESNET18, "dp", "cpu:0-3", "reference", NULL, 4, 10}};

int main(void) {
    static const struct {
        const char *what;
        struct variant *variants;
        size_t n;
        void (*run)(void **state);
    } groups[] = {
        {"20 steps", ddp, sizeof ddp / sizeof *ddp, test_ddp},
        {"gradients", dp, sizeof dp / sizeof *dp, test_dp_gradients},
        {"gathered", gather, sizeof gather / sizeof *gather, test_dp_gathers},
    };
    struct CMUnitTest tests[32];
    char names[32][80];
    size_t n = 0;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        for (size_t i = 0; i < groups[g].n; i++, n++) {
            struct variant *v = &groups[g].variants[i];
            snprintf(names[n], sizeof names[n], "%s on %s, %s, %s %s, %s", v->strategy, v->devices,
                     v->net->name, v->backend, v->conv_algo ? v->conv_algo : "", groups[g].what);
            tests[n] = (struct CMUnitTest){.name = names[n], .test_func = groups[g].run, .initial_state = v};
        }
    }
    return _cmocka_run_group_tests("parallel.golden", tests, n, NULL, NULL);
}
