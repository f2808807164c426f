/* For tests of --amp bf16 against PyTorch's torch.autocast on the CPU: tests/golden/models/NAME.amp, made by
   tools/make_golden_amp.py. */
#ifndef CVY_TESTS_AMP_NET_H
#define CVY_TESTS_AMP_NET_H

#include "golden_net.h"

enum { BATCH = 8 };

struct variant {
    const struct net *net;
    const char *backend, *devices;
    int64_t shards;
};

/* A residual block with batch-norm. */
static inline cvy_value build_block(struct cvy_graph *g, cvy_value images, int64_t num_classes) {
    cvy_value x = cvy_conv2d(
        g, images,
        &(cvy_conv2d_args){.name = "conv1", .out_channels = 16, .kernel = 3, .padding = 1, .no_bias = true});
    x = cvy_relu(g, cvy_batch_norm(g, x, &(cvy_batch_norm_args){.name = "bn1"}));
    cvy_value y =
        cvy_conv2d(g, x, &(cvy_conv2d_args){.name = "conv2", .out_channels = 16, .kernel = 3, .padding = 1});
    y = cvy_batch_norm(g, y, &(cvy_batch_norm_args){.name = "bn2"});
    y = cvy_flatten(g, cvy_adaptive_avg_pool(g, cvy_relu(g, cvy_add(g, y, x)), 1, 1));
    return cvy_linear(g, y, &(cvy_linear_args){.name = "fc", .out_features = num_classes});
}

static const struct net BLOCK = {"block", 3, 16, build_block};

static const double TOLERANCE = 1e-2;

static inline void check_logits_within(const struct fixture *f, double bound) {
    double *truth = copy_bytes(f, "logits", CVY_F64);
    float logits[BATCH * CLASSES];
    struct squares sum = {0, 0};
    for (int64_t first = 0; first < f->n_images; first += BATCH) {
        cvy_batch batch = batch_at(f, first, BATCH);
        assert_ok(cvy_evaluate(f->session, &batch, NULL, NULL, logits));
        add_squares(&sum, logits, truth + first * CLASSES, BATCH * CLASSES);
    }
    assert_within(sum, bound, "logits");
    free(truth);
}

static inline void add_gradient(const struct fixture *f, const char *golden_name, struct squares *sum) {
    struct cvy_desc desc = describe(f, golden_name);
    double *truth = copy_bytes(f, golden_name, CVY_F64);
    float *mine = malloc((size_t)cvy_shape_count(&desc.shape) * sizeof *mine);
    assert_non_null(mine);
    assert_ok(cvy_session_gradient(f->session, golden_name + strlen("grad."), mine));
    add_squares(sum, mine, truth, cvy_shape_count(&desc.shape));
    free(mine);
    free(truth);
}

static inline void check_gradients_within(const struct fixture *f, double bound) {
    cvy_batch batch = batch_at(f, 0, BATCH);
    cvy_metrics metrics;
    struct squares sum = {0, 0};
    double loss = scalar(f, "", "loss");
    assert_ok(cvy_forward(f->session, &batch));
    assert_ok(cvy_backward(f->session));
    cvy_session_metrics(f->session, &metrics);
    if (!(fabs(metrics.loss - loss) <= TOLERANCE * loss))
        fail_msg("loss %.9g, PyTorch's is %.9g", metrics.loss, loss);
    for (size_t i = 0; i < cvy_safetensors_count(f->golden); i++) {
        const char *name = cvy_safetensors_name(f->golden, i);
        if (strncmp(name, "grad.", 5) == 0)
            add_gradient(f, name, &sum);
    }
    assert_within(sum, bound, "gradients");
}

static inline void test_variant(void **state) {
    const struct variant *v = *state;
    struct fixture f = {.net = v->net};
    char file[64];
    snprintf(file, sizeof file, "%s.amp", v->net->name);
    open_golden(&f, file);
    open_session(&f, (cvy_plan_options){.devices = v->devices,
                                        .backend = v->backend,
                                        .amp = "bf16",
                                        .batch_size = BATCH,
                                        .shards = v->shards,
                                        .sync_bn = v->shards > 1});
    check_logits_within(&f, TOLERANCE);
    check_gradients_within(&f, fmin(TOLERANCE, scalar(&f, "", "float_error")));
    close_session(&f);
}

/* Runs them all; what main returns. */
static inline int run_variants(const char *name, struct variant *variants, size_t n) {
    struct CMUnitTest tests[8];
    char names[8][64];
    assert_true(n <= 8);
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "%s, %s, S=%d", variants[i].net->name, variants[i].backend,
                 (int)variants[i].shards);
        tests[i] =
            (struct CMUnitTest){.name = names[i], .test_func = test_variant, .initial_state = &variants[i]};
    }
    return _cmocka_run_group_tests(name, tests, n, NULL, NULL);
}

#endif
