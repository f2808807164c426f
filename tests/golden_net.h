/* Whole networks and what PyTorch made of them: a file of tests/golden/models, a session, distances. */
#ifndef CVY_TESTS_GOLDEN_NET_H
#define CVY_TESTS_GOLDEN_NET_H

#include "cvy_test.h"
#include "engine/session.h"
#include "graph/safetensors.h"
#include "models/resnet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLASSES = 10, N_STEPS = 20 };

struct net {
    const char *name; /* of its weights' file */
    int64_t channels, size;
    cvy_value (*build)(struct cvy_graph *g, cvy_value images, int64_t num_classes);
};

struct fixture {
    const struct net *net;
    struct cvy_safetensors *golden;
    cvy_graph *graph;
    cvy_plan *plan;
    cvy_session *session;
    int64_t n_images;
    float *images;
    int64_t *labels;
};

static inline cvy_value build_lenet5(struct cvy_graph *g, cvy_value images, int64_t num_classes) {
    return cvy_model(g, "lenet5", images, num_classes);
}

/* resnet18_cifar, 16 times narrower. */
static inline cvy_value build_narrow_resnet18(struct cvy_graph *g, cvy_value images, int64_t num_classes) {
    const struct cvy_resnet shape = {.is_small = true, .width = 4, .n_stages = 4, .n_blocks = {2, 2, 2, 2}};
    return cvy_resnet_build(g, images, num_classes, &shape);
}

static const struct net LENET5 = {"lenet5", 1, 8, build_lenet5};
static const struct net RESNET18 = {"resnet18_cifar", 3, 16, build_narrow_resnet18};

/* ---- golden tensors -------------------------------------------------------------------------------- */

static inline struct cvy_desc describe(const struct fixture *f, const char *name) {
    struct cvy_desc desc;
    const void *bytes;
    assert_ok(cvy_safetensors_find(f->golden, name, &desc, &bytes));
    return desc;
}

/* A copy of the tensor's bytes; the caller frees it. */
static inline void *copy_bytes(const struct fixture *f, const char *name, cvy_dtype dtype) {
    struct cvy_desc desc;
    const void *bytes;
    assert_ok(cvy_safetensors_find(f->golden, name, &desc, &bytes));
    assert_int_equal(desc.dtype, dtype);
    void *copy = malloc(cvy_desc_bytes(&desc));
    assert_non_null(copy);
    return memcpy(copy, bytes, cvy_desc_bytes(&desc));
}

/* A double that is a tensor of its own. */
static inline double scalar(const struct fixture *f, const char *prefix, const char *name) {
    char full[256];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    double *value = copy_bytes(f, full, CVY_F64), x = *value;
    free(value);
    return x;
}

/* ---- distances ------------------------------------------------------------------------------------- */

struct squares { /* of a difference, and of the truth */
    double error, truth;
};

static inline void add_squares(struct squares *sum, const float *a, const double *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        sum->error += (a[i] - b[i]) * (a[i] - b[i]);
        sum->truth += b[i] * b[i];
    }
}

static inline void assert_within(struct squares sum, double bound, const char *what) {
    double relative = sqrt(sum.error / sum.truth);
    print_message("  %s: %.1e of %.0e\n", what, relative, bound);
    if (!(relative <= bound)) /* also when it is not a number */
        fail_msg("%s: ||a - b|| / ||b|| = %.3g, allowed is %.3g", what, relative, bound);
}

/* ---- a session ------------------------------------------------------------------------------------- */

/* Opens tests/golden/models/FILE.safetensors, which has images and labels. */
static inline void open_golden(struct fixture *f, const char *file) {
    char path[256];
    snprintf(path, sizeof path, "tests/golden/models/%s.safetensors", file);
    assert_ok(cvy_safetensors_open(path, &f->golden));
    f->n_images = describe(f, "images").shape.dim[0];
    f->images = copy_bytes(f, "images", CVY_F32);
    f->labels = copy_bytes(f, "labels", CVY_I64);
}

/* The net with its golden weights under these options, trained as the golden ones are. */
static inline void open_session(struct fixture *f, cvy_plan_options options) {
    char path[256];
    assert_ok(cvy_graph_new(&f->graph));
    cvy_value images = cvy_input(f->graph, "images", f->net->channels, f->net->size, f->net->size);
    cvy_value logits = f->net->build(f->graph, images, CLASSES);
    cvy_output(f->graph, "logits", logits);
    cvy_cross_entropy(f->graph, logits, cvy_labels(f->graph), 0);
    assert_ok(cvy_graph_status(f->graph));
    options.threads_per_device = 1;
    options.optimizer = "sgd";
    options.optimizer_attributes = "momentum=0.9 weight_decay=5e-4";
    assert_ok(cvy_plan_new(f->graph, &options, &f->plan));
    assert_ok(cvy_session_new(f->plan, &f->session));
    snprintf(path, sizeof path, "tests/golden/models/%s.weights.safetensors", f->net->name);
    assert_ok(cvy_load_weights(f->session, path));
    cvy_session_set_lr(f->session, 0.02);
}

static inline void close_session(struct fixture *f) {
    cvy_session_free(f->session);
    cvy_plan_free(f->plan);
    cvy_graph_free(f->graph);
    cvy_safetensors_free(f->golden);
    free(f->images);
    free(f->labels);
}

static inline cvy_batch batch_at(const struct fixture *f, int64_t first, int64_t n) {
    int64_t image = f->net->channels * f->net->size * f->net->size;
    return (cvy_batch){.n = n,
                       .channels = f->net->channels,
                       .height = f->net->size,
                       .width = f->net->size,
                       .dtype = CVY_F32,
                       .order = CVY_NCHW,
                       .images = f->images + first * image,
                       .labels = f->labels + first,
                       .std = {1, 1, 1, 1}};
}

/* ---- what is compared ------------------------------------------------------------------------------ */

/* The logits of evaluation, in batches of n: ||a - b|| <= 1e-4 ||b||. */
static inline void check_logits(const struct fixture *f, int64_t n) {
    double *truth = copy_bytes(f, "logits", CVY_F64);
    float *logits = malloc((size_t)(n * CLASSES) * sizeof *logits);
    struct squares sum = {0, 0};
    assert_non_null(logits);
    for (int64_t first = 0; first < f->n_images; first += n) {
        int64_t now = f->n_images - first < n ? f->n_images - first : n;
        cvy_batch batch = batch_at(f, first, now);
        memset(logits, 0xFF, (size_t)(n * CLASSES) * sizeof *logits); /* NaN */
        assert_ok(cvy_evaluate(f->session, &batch, NULL, NULL, logits));
        add_squares(&sum, logits, truth + first * CLASSES, now * CLASSES);
    }
    assert_within(sum, 1e-4, "logits");
    free(logits);
    free(truth);
}

/* ||g||^2 over all parameters. */
static inline double total_square(const struct fixture *f) {
    double total = 0;
    for (size_t i = 0; i < cvy_safetensors_count(f->golden); i++) {
        const char *name = cvy_safetensors_name(f->golden, i);
        if (strncmp(name, "grad.", 5) != 0)
            continue;
        struct cvy_desc desc = describe(f, name);
        double *g = copy_bytes(f, name, CVY_F64);
        for (int64_t k = 0; k < cvy_shape_count(&desc.shape); k++)
            total += g[k] * g[k];
        free(g);
    }
    return total;
}

/* How far the gradient of a parameter is off, in units of what is allowed:
   max(1e-4 ||b||, 3 x PyTorch's own float32 error) + 1e-6 ||g||, g = all of them. */
static inline double gradient_error(const struct fixture *f, const char *golden_name, double total) {
    const char *parameter = golden_name + strlen("grad.");
    struct cvy_desc desc = describe(f, golden_name);
    int64_t n = cvy_shape_count(&desc.shape);
    double *truth = copy_bytes(f, golden_name, CVY_F64);
    float *mine = malloc((size_t)n * sizeof *mine);
    assert_non_null(mine);
    memset(mine, 0xFF, (size_t)n * sizeof *mine);
    assert_ok(cvy_session_gradient(f->session, parameter, mine));
    struct squares sum = {0, 0};
    add_squares(&sum, mine, truth, n);
    free(mine);
    free(truth);
    double own_error = scalar(f, "fp32_error.", parameter);
    return sqrt(sum.error) / (fmax(1e-4 * sqrt(sum.truth), 3 * own_error) + 1e-6 * sqrt(total));
}

/* Forward and backward of the first n images; leaves the session before its update. */
static inline void check_loss_and_gradients(const struct fixture *f, int64_t n_batch) {
    cvy_batch batch = batch_at(f, 0, n_batch);
    cvy_metrics metrics;
    assert_ok(cvy_forward(f->session, &batch));
    assert_ok(cvy_backward(f->session));
    cvy_session_metrics(f->session, &metrics);
    double truth = scalar(f, "", "loss");
    if (!(fabs(metrics.loss - truth) <= 1e-5 * truth))
        fail_msg("loss %.9g, PyTorch's is %.9g", metrics.loss, truth);

    double total = total_square(f), worst = 0;
    int n = 0;
    for (size_t i = 0; i < cvy_safetensors_count(f->golden); i++) {
        const char *name = cvy_safetensors_name(f->golden, i);
        if (strncmp(name, "grad.", 5) != 0)
            continue;
        double error = gradient_error(f, name, total);
        if (!(error <= 1))
            fail_msg("%s is off by %.3g times what is allowed", name, error);
        worst = fmax(worst, error);
        n++;
    }
    assert_true(n > 0);
    print_message("  %d gradients: the worst is at %.2f of what is allowed\n", n, worst);
}

/* Against after.TENSOR: all weights together, and all running statistics together, within 1e-3. */
static inline void check_weights(const struct fixture *f) {
    char path[] = "/tmp/convoy-golden-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    struct cvy_safetensors *saved;
    assert_ok(cvy_save_weights(f->session, path));
    assert_ok(cvy_safetensors_open(path, &saved));
    unlink(path);

    struct squares weights = {0, 0}, statistics = {0, 0};
    for (size_t i = 0; i < cvy_safetensors_count(f->golden); i++) {
        const char *name = cvy_safetensors_name(f->golden, i);
        if (strncmp(name, "after.", 6) != 0)
            continue;
        struct cvy_desc desc, golden_desc = describe(f, name);
        const void *bytes;
        assert_ok(cvy_safetensors_find(saved, name + 6, &desc, &bytes));
        assert_true(cvy_shape_equal(&desc.shape, &golden_desc.shape));
        float *truth = copy_bytes(f, name, CVY_F32);
        for (int64_t k = 0; k < cvy_shape_count(&desc.shape); k++) {
            float mine;
            memcpy(&mine, (const char *)bytes + (size_t)k * sizeof mine, sizeof mine);
            add_squares(strstr(name, ".running_") ? &statistics : &weights, &mine, &(double){truth[k]}, 1);
        }
        free(truth);
    }
    assert_within(weights, 1e-3, "weights after 20 steps");
    if (statistics.truth > 0)
        assert_within(statistics, 1e-3, "running statistics after 20 steps");
    cvy_safetensors_free(saved);
}

#endif
