/* torchvision's models against PyTorch in float64: tests/golden/models/NAME.net.safetensors, made by
   tools/make_golden_nets.py, which says what the files hold and how weights follow from names.
     logits       ||a - b|| <= 1e-4 ||b||
     gradients    ||a - b|| <= max(1e-4 ||b||, 3 x PyTorch's own float32 error) + 1e-6 ||g||, g = all of them,
                  with ||d||^2 as the mean of (d . r)^2 over the probes r, which are random signs */
#include "golden_net.h"

#include <inttypes.h>

enum { PROBES = 4, BATCH = 4, SIZE = 64 };

/* ---- numbers of names -------------------------------------------------------------------------------- */

static uint64_t name_hash(const char *name) {
    uint64_t hash = 0xCBF29CE484222325U;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001B3U;
    return hash;
}

/* splitmix64 */
static uint64_t bits_at(uint64_t hash, int64_t place) {
    uint64_t x = hash + (uint64_t)place + 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
}

/* In [-1, 1). */
static float number_at(uint64_t hash, int64_t place) {
    return (float)((double)(bits_at(hash, place) >> 40) / (1 << 23) - 1);
}

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static void fill_tensor(const char *name, const struct cvy_desc *desc, float *out) {
    int64_t n = cvy_shape_count(&desc->shape);
    uint64_t hash = name_hash(name);
    bool is_centred = ends_with(name, ".running_mean") || ends_with(name, ".bias");
    bool is_matrix = desc->shape.n > 1;
    int64_t fan_in = is_matrix ? n / desc->shape.dim[0] : 1;
    float scale = is_matrix ? sqrtf(6.0F / (float)fan_in) : 0.25F;
    for (int64_t i = 0; i < n; i++) {
        float x = number_at(hash, i) * scale;
        out[i] = is_matrix || is_centred ? x : 1 + x;
    }
}

/* ---- a session ---------------------------------------------------------------------------------------- */

/* The golden file, its labels, and the images by their name. */
static void open_batch(struct fixture *f) {
    char text[256];
    snprintf(text, sizeof text, "tests/golden/models/%s.net.safetensors", f->net->name);
    assert_ok(cvy_safetensors_open(text, &f->golden));
    f->labels = copy_bytes(f, "labels", CVY_I64);
    f->n_images = BATCH;
    int64_t n = BATCH * f->net->channels * f->net->size * f->net->size;
    int64_t *draw = copy_bytes(f, "draw", CVY_I64);
    snprintf(text, sizeof text, "images.%" PRId64, *draw);
    free(draw);
    f->images = malloc((size_t)n * sizeof *f->images);
    assert_non_null(f->images);
    uint64_t hash = name_hash(text);
    for (int64_t i = 0; i < n; i++)
        f->images[i] = number_at(hash, i);
}

/* The bytes of one tensor: of the golden file, or by its name; integers stay as they are. The caller frees them. */
static void *make_bytes(const struct fixture *f, const char *name, const struct cvy_desc *desc,
                        const void *initial) {
    char golden_name[256];
    snprintf(golden_name, sizeof golden_name, "bias.%s", name);
    if (cvy_safetensors_has(f->golden, golden_name))
        return copy_bytes(f, golden_name, CVY_F32);
    void *bytes = malloc(cvy_desc_bytes(desc));
    assert_non_null(bytes);
    if (desc->dtype == CVY_F32)
        fill_tensor(name, desc, bytes);
    else
        memcpy(bytes, initial, cvy_desc_bytes(desc));
    return bytes;
}

/* Gives the session the weights of the golden net: its own are saved, changed and loaded again. */
static void set_weights(const struct fixture *f) {
    char path[] = "/tmp/convoy-net-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    struct cvy_safetensors *saved;
    assert_ok(cvy_save_weights(f->session, path));
    assert_ok(cvy_safetensors_open(path, &saved));
    size_t n = cvy_safetensors_count(saved);
    struct cvy_safetensor *tensors = calloc(n, sizeof *tensors);
    assert_non_null(tensors);
    for (size_t i = 0; i < n; i++) {
        const void *initial;
        tensors[i].name = cvy_safetensors_name(saved, i);
        assert_ok(cvy_safetensors_find(saved, tensors[i].name, &tensors[i].desc, &initial));
        tensors[i].bytes = make_bytes(f, tensors[i].name, &tensors[i].desc, initial);
    }
    assert_ok(cvy_safetensors_write(path, tensors, n, NULL, 0));
    for (size_t i = 0; i < n; i++)
        free((void *)tensors[i].bytes);
    free(tensors);
    cvy_safetensors_free(saved);
    assert_ok(cvy_load_weights(f->session, path));
    unlink(path);
}

static void open_net(struct fixture *f, const char *backend) {
    open_batch(f);
    assert_ok(cvy_graph_new(&f->graph));
    cvy_value images = cvy_input(f->graph, "images", f->net->channels, f->net->size, f->net->size);
    cvy_value logits = cvy_model(f->graph, f->net->name, images, CLASSES);
    cvy_output(f->graph, "logits", logits);
    cvy_cross_entropy(f->graph, logits, cvy_labels(f->graph), 0);
    assert_ok(cvy_graph_status(f->graph));
    const cvy_plan_options options = {.devices = "cpu:0",
                                      .backend = backend,
                                      .batch_size = BATCH,
                                      .shards = 1,
                                      .threads_per_device = 1,
                                      .optimizer = "sgd"};
    assert_ok(cvy_plan_new(f->graph, &options, &f->plan));
    assert_ok(cvy_session_new(f->plan, &f->session));
    set_weights(f);
}

/* ---- gradients ---------------------------------------------------------------------------------------- */

enum {
    NORM,
    OWN_ERROR,
    COUNT,
    PRODUCTS
}; /* what a grad.PARAMETER holds, at the end (b . r) for each probe */

/* ||a - b||^2 by the probes. */
static double probed_square(const char *name, const float *a, int64_t n, const double *golden) {
    uint64_t hash = name_hash(name);
    double product[PROBES] = {0}, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = bits_at(hash, i);
        for (int k = 0; k < PROBES; k++)
            product[k] += bits >> k & 1 ? -a[i] : a[i];
    }
    for (int k = 0; k < PROBES; k++)
        sum += (product[k] - golden[PRODUCTS + k]) * (product[k] - golden[PRODUCTS + k]);
    return sum / PROBES;
}

static double probed_error(const struct fixture *f, const char *parameter, const double *golden,
                           double norm) {
    int64_t n = (int64_t)golden[COUNT];
    float *mine = malloc((size_t)n * sizeof *mine);
    assert_non_null(mine);
    memset(mine, 0xFF, (size_t)n * sizeof *mine); /* NaN */
    assert_ok(cvy_session_gradient(f->session, parameter, mine));
    double error = sqrt(probed_square(parameter, mine, n, golden));
    free(mine);
    return error / (fmax(1e-4 * golden[NORM], 3 * golden[OWN_ERROR]) + 1e-6 * norm);
}

static double norm_of_all(const struct fixture *f) {
    double sum = 0;
    for (size_t i = 0; i < cvy_safetensors_count(f->golden); i++) {
        const char *name = cvy_safetensors_name(f->golden, i);
        if (strncmp(name, "grad.", 5) != 0)
            continue;
        double *golden = copy_bytes(f, name, CVY_F64);
        sum += golden[NORM] * golden[NORM];
        free(golden);
    }
    return sqrt(sum);
}

static void check_gradients(const struct fixture *f) {
    cvy_batch batch = batch_at(f, 0, BATCH);
    cvy_metrics metrics;
    assert_ok(cvy_forward(f->session, &batch));
    assert_ok(cvy_backward(f->session));
    cvy_session_metrics(f->session, &metrics);
    double truth = scalar(f, "", "loss"), norm = norm_of_all(f), worst = 0;
    if (!(fabs(metrics.loss - truth) <= 1e-5 * truth))
        fail_msg("loss %.9g, PyTorch's is %.9g", metrics.loss, truth);
    int n = 0;
    for (size_t i = 0; i < cvy_safetensors_count(f->golden); i++) {
        const char *name = cvy_safetensors_name(f->golden, i);
        if (strncmp(name, "grad.", 5) != 0)
            continue;
        double *golden = copy_bytes(f, name, CVY_F64);
        double error = probed_error(f, name + 5, golden, norm);
        free(golden);
        if (!(error <= 1))
            fail_msg("%s is off by %.3g times what is allowed", name, error);
        worst = fmax(worst, error);
        n++;
    }
    assert_true(n > 0);
    print_message("  %d gradients: the worst is at %.2f of what is allowed\n", n, worst);
}

static const char *const names[] = {"resnet18",     "squeezenet1_1",      "densenet121",
                                    "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x1_0"};

static void test_net(void **state) {
    const struct net net = {*state, 3, SIZE, NULL};
    struct fixture f = {.net = &net};
    open_net(&f, "cpu");
    check_logits(&f, BATCH);
    check_gradients(&f);
    close_session(&f);
}

int main(void) {
    enum { N = sizeof names / sizeof *names };
    struct CMUnitTest tests[N];
    for (size_t i = 0; i < N; i++)
        tests[i] =
            (struct CMUnitTest){.name = names[i], .test_func = test_net, .initial_state = (void *)names[i]};
    return cmocka_run_group_tests_name("net.golden", tests, NULL, NULL);
}
