/* Model parallel: the first half of a network on one device, the second half on another. The counterpart of PyTorch's
 * tutorial "Single-Machine Model Parallel Best Practices", in its two parts: first one device waits while the other
 * works (strategy "mp"), then parts of a batch follow each other (strategy "pipeline"), which takes less time.
 *
 * A change of strategy changes a word of the options and no bit of the weights. Ends with 0 when one device, "mp" and
 * "pipeline" end with the same weights and have learnt the digits.
 * Build it with: cc model_parallel.c $(pkg-config --cflags --libs convoy) */
#include <convoy/convoy.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Passes an error up. */
#define TRY(call)                    \
    do {                             \
        cvy_status status_ = (call); \
        if (status_ != CVY_OK)       \
            return status_;          \
    } while (0)

enum { BATCH = 64, SHARDS = 8, SIDE = 12, CLASSES = 10, EPOCHS = 4 };

/* ---- the network ----------------------------------------------------------------------------------- */

static cvy_value convolve(cvy_graph *graph, cvy_value x, int64_t channels, int64_t stride) {
    const cvy_conv2d_args args = {
        .out_channels = channels, .kernel = 3, .stride = stride, .padding = 1, .no_bias = true};
    return cvy_relu(graph, cvy_batch_norm(graph, cvy_conv2d(graph, x, &args), &(cvy_batch_norm_args){0}));
}

static cvy_value module1(cvy_graph *graph, cvy_value x) {
    x = convolve(graph, x, 16, 1);    /* N,16,12,12 */
    return convolve(graph, x, 16, 1); /* N,16,12,12 */
}

static cvy_value module2(cvy_graph *graph, cvy_value x) {
    x = convolve(graph, x, 32, 2); /* N,32,6,6 */
    x = convolve(graph, x, 32, 1); /* N,32,6,6 */
    x = cvy_flatten(graph, cvy_adaptive_avg_pool(graph, x, 1, 1));
    return cvy_linear(graph, x, &(cvy_linear_args){.out_features = CLASSES});
}

static cvy_status build(cvy_graph *graph) {
    cvy_value images = cvy_input(graph, "images", 1, SIDE, SIDE), labels = cvy_labels(graph);
    cvy_stage(graph, 0); /* self.module1 = Module1().to('cuda:0') */
    cvy_value x = module1(graph, images);
    cvy_stage(graph, 1);   /* self.module2 = Module2().to('cuda:1') */
    x = module2(graph, x); /* self.module2(x.to('cuda:1')): the activation is sent by itself */
    cvy_cross_entropy(graph, x, labels, 0); /* labels.to('cuda:1'): the loss is where the last stage is */
    return cvy_graph_status(graph);
}

/* ---- training -------------------------------------------------------------------------------------- */

/* A run, and what it came to. */
struct run {
    const char *strategy, *devices;
    double s, top1; /* seconds of all epochs; share of the training images that were right in the last one */
    uint64_t hash;  /* of the weights */
};

static double now_s(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static cvy_status train(cvy_session *session, cvy_loader *loader, struct run *run) {
    double start_s = now_s();
    cvy_session_set_lr(session, 0.1);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        int64_t n = 0, n_right = 0;
        cvy_batch batch;
        cvy_status status;
        TRY(cvy_loader_start(loader, epoch));
        while ((status = cvy_loader_next(loader, &batch)) == CVY_OK) {
            cvy_metrics metrics;
            TRY(cvy_step(session, &batch)); /* loss_fn(model(inputs), labels).backward(); optimizer.step() */
            cvy_session_metrics(session, &metrics);
            n += metrics.n;
            n_right += metrics.top1;
        }
        if (status != CVY_END)
            return status;
        run->top1 = 100.0 * (double)n_right / (double)n;
    }
    run->s = now_s() - start_s;
    return cvy_weights_hash(session, &run->hash);
}

/* Which layers are where, and what memory they take. */
static cvy_status print_stages(const cvy_plan *plan) {
    char *table;
    TRY(cvy_plan_explain(plan, NULL, &table));
    printf("%s\n", table);
    free(table);
    return CVY_OK;
}

static cvy_status run_strategy(const cvy_graph *graph, cvy_loader *loader, struct run *run) {
    const cvy_plan_options options = {.devices = run->devices,
                                      .strategy = run->strategy,
                                      .batch_size = BATCH,
                                      .shards = SHARDS, /* the tutorial's split_size is BATCH / SHARDS */
                                      .threads_per_device = 1,
                                      .optimizer = "sgd",
                                      .optimizer_attributes = "momentum=0.9"};
    cvy_plan *plan = NULL;
    cvy_session *session = NULL;
    cvy_status status = cvy_plan_new(graph, &options, &plan);
    if (status == CVY_OK && strcmp(run->strategy, "mp") == 0)
        status = print_stages(plan);
    if (status == CVY_OK)
        status = cvy_session_new(plan, &session);
    if (status == CVY_OK)
        status = train(session, loader, run);
    cvy_session_free(session);
    cvy_plan_free(plan);
    return status;
}

static cvy_status open_data(cvy_dataset **set, cvy_loader **loader) {
    cvy_loader_options options;
    cvy_loader_defaults(&options);
    options.batch_size = BATCH;
    options.resize = SIDE; /* from 8x8 */
    TRY(cvy_dataset_open("digits", CVY_SPLIT_TRAIN, NULL, set));
    return cvy_loader_new(*set, &options, loader);
}

int main(void) {
    struct run runs[] = {{.strategy = "single", .devices = "cpu:0"}, /* which does not look at stages */
                         {.strategy = "mp", .devices = "cpu:0-1"},   /* stage 0 on cpu:0, stage 1 on cpu:1 */
                         {.strategy = "pipeline", .devices = "cpu:0-1"}};
    cvy_dataset *set = NULL;
    cvy_loader *loader = NULL;
    cvy_graph *graph = NULL;
    int is_right = 1;
    cvy_status status = open_data(&set, &loader);
    if (status == CVY_OK)
        status = cvy_graph_new(&graph);
    if (status == CVY_OK)
        status = build(graph);
    for (int i = 0; i < 3 && status == CVY_OK; i++) {
        status = run_strategy(graph, loader, &runs[i]);
        if (status == CVY_OK)
            printf("%-8s on %-7s %5.2f s, top-1 %.2f %% of the training images, weights %016llx\n",
                   runs[i].strategy, runs[i].devices, runs[i].s, runs[i].top1,
                   (unsigned long long)runs[i].hash);
        is_right = is_right && runs[i].hash == runs[0].hash && runs[i].top1 >= 90;
    }
    if (status != CVY_OK)
        fprintf(stderr, "model_parallel: %s\n", cvy_error());
    cvy_graph_free(graph);
    cvy_loader_free(loader);
    cvy_dataset_free(set);
    if (status != CVY_OK)
        return cvy_exit_code(status);
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
