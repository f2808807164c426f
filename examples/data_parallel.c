/* Data parallel: a model on four devices, each of which takes a part of every batch. The counterpart of PyTorch's
 * tutorial "Optional: Data Parallelism" (nn.DataParallel), with its sizes: points of 5 numbers, 2 outputs, batches of
 * 30, and the last of an epoch only 10.
 *
 *     here                                       there
 *     options.devices = "cpu:0-3"                model = nn.DataParallel(model, device_ids=[0, 1, 2, 3])
 *     options.strategy = "dp"                    model.to(device)
 *
 * The first device keeps the parameters and hands them out before each step; the others send it their gradients. Ends
 * with 0 when the outputs are right, and are those of one device, bit for bit.
 * Build it with: cc data_parallel.c $(pkg-config --cflags --libs convoy) */
#include <convoy/convoy.h>

#include <stdio.h>
#include <stdlib.h>

/* Passes an error up. */
#define TRY(call)                    \
    do {                             \
        cvy_status status_ = (call); \
        if (status_ != CVY_OK)       \
            return status_;          \
    } while (0)

enum { N_DEVICES = 4, INPUT = 5, OUTPUT = 2, BATCH = 30, N_POINTS = 100, EPOCHS = 60 };

/* Points between -1 and 1 in each direction; the label says whether their coordinates add up to more than 0. */
struct points {
    float x[N_POINTS][INPUT];
    int64_t labels[N_POINTS];
};

static void make_points(struct points *points) {
    uint32_t random = 1;
    for (int i = 0; i < N_POINTS; i++) {
        float sum = 0;
        for (int k = 0; k < INPUT; k++) {
            random =
                random * 1664525u + 1013904223u; /* a linear congruential generator; its high bits are good */
            points->x[i][k] = (float)(random >> 16) / 32768 - 1;
            sum += points->x[i][k];
        }
        points->labels[i] = sum > 0;
    }
}

/* Points from `first` on, BATCH of them or what is left: a batch of the program's own, which the devices share.
 * A point is an "image" of one channel, one row and 5 columns. */
static cvy_batch batch_at(const struct points *points, int64_t first) {
    return (cvy_batch){.n = first + BATCH < N_POINTS ? BATCH : N_POINTS - first,
                       .channels = 1,
                       .height = 1,
                       .width = INPUT,
                       .dtype = CVY_F32,
                       .images = points->x[first],
                       .labels = &points->labels[first]};
}

/* self.fc = nn.Linear(input_size, output_size): nothing here knows of devices. */
static cvy_status build(cvy_graph *graph) {
    cvy_value x = cvy_input(graph, "images", 1, 1, INPUT), labels = cvy_labels(graph); /* N,1,1,5 and N */
    x = cvy_linear(graph, cvy_flatten(graph, x), &(cvy_linear_args){.name = "fc", .out_features = OUTPUT});
    cvy_output(graph, "logits", x); /* N,2: what cvy_evaluate will gather */
    cvy_cross_entropy(graph, x, labels, 0);
    return cvy_graph_status(graph);
}

static cvy_status train(cvy_session *session, const struct points *points) {
    cvy_session_set_lr(session, 1);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (int64_t first = 0; first < N_POINTS; first += BATCH) {
            cvy_batch batch = batch_at(points, first);
            TRY(cvy_step(session, &batch)); /* loss.backward(); optimizer.step() */
        }
    }
    cvy_metrics metrics;
    cvy_session_metrics(session, &metrics);
    printf("  trained: loss %.4f in the last step\n", metrics.loss);
    return CVY_OK;
}

/* output = model(input): each device computes its part, and the whole comes back in the order of the input. */
static cvy_status predict(const cvy_plan *plan, cvy_session *session, int n_devices,
                          const struct points *points, float logits[N_POINTS][OUTPUT]) {
    for (int64_t first = 0; first < N_POINTS; first += BATCH) {
        cvy_batch batch = batch_at(points, first);
        int64_t begin, n;
        TRY(cvy_evaluate(session, &batch, NULL, NULL, logits[first]));
        for (int k = 0; k < n_devices; k++) {
            TRY(cvy_plan_images(plan, k, batch.n, &begin, &n));
            printf("    cpu:%d: input size [%lld, %d], output size [%lld, %d]\n", k, (long long)n, INPUT,
                   (long long)n, OUTPUT);
        }
        printf("  outside: input size [%lld, %d], output size [%lld, %d]\n", (long long)batch.n, INPUT,
               (long long)batch.n, OUTPUT);
    }
    return CVY_OK;
}

/* Trains on these devices and fills logits. */
static cvy_status run(const char *devices, int n_devices, const char *strategy, const struct points *points,
                      float logits[N_POINTS][OUTPUT]) {
    const cvy_plan_options options = {.devices = devices,
                                      .strategy = strategy,
                                      .batch_size = BATCH,
                                      .shards =
                                          N_DEVICES, /* however many devices: so the bits are the same */
                                      .threads_per_device = 1,
                                      .optimizer = "sgd"};
    cvy_graph *graph = NULL;
    cvy_plan *plan = NULL;
    cvy_session *session = NULL;
    printf("using %d device%s: %s\n", n_devices, n_devices == 1 ? "" : "s", devices);
    cvy_status status = cvy_graph_new(&graph);
    if (status == CVY_OK)
        status = build(graph);
    if (status == CVY_OK)
        status = cvy_plan_new(graph, &options, &plan);
    if (status == CVY_OK)
        status = cvy_session_new(plan, &session);
    if (status == CVY_OK)
        status = train(session, points);
    if (status == CVY_OK)
        status = predict(plan, session, n_devices, points, logits);
    cvy_session_free(session);
    cvy_plan_free(plan);
    cvy_graph_free(graph);
    return status;
}

int main(void) {
    static struct points points;
    static float logits[N_POINTS][OUTPUT], of_one[N_POINTS][OUTPUT];
    int n_right = 0, n_same = 0;
    make_points(&points);
    cvy_status status = run("cpu:0-3", N_DEVICES, "dp", &points, logits);
    if (status == CVY_OK)
        status = run("cpu:0", 1, "single", &points, of_one);
    if (status != CVY_OK) {
        fprintf(stderr, "data_parallel: %s\n", cvy_error());
        return cvy_exit_code(status);
    }
    for (int i = 0; i < N_POINTS; i++) {
        n_right += (logits[i][1] > logits[i][0]) == points.labels[i];
        n_same += logits[i][0] == of_one[i][0] && logits[i][1] == of_one[i][1];
    }
    printf("right: %d of %d; the same as on one device: %d\n", n_right, N_POINTS, n_same);
    return n_right >= 95 && n_same == N_POINTS ? EXIT_SUCCESS : EXIT_FAILURE;
}
