/* Hybrid: two modules, each data parallel on its own pair of devices: module 1 on cpu:0 and cpu:1, module 2 on cpu:2
 * and cpu:3. The counterpart of
 *
 *     self.module1 = nn.DataParallel(Module1(), device_ids=[0, 1]).to('cuda:0')
 *     self.module2 = nn.DataParallel(Module2(), device_ids=[2, 3]).to('cuda:2')
 *     def forward(self, x): return self.module2(self.module1(x).to('cuda:2'))
 *
 * but that no device gathers what the others computed: half of the batch goes from cpu:0 to cpu:2, the other half
 * from cpu:1 to cpu:3, in parts that follow each other, and each pair adds up its own gradients. Ends with 0 when the
 * network has learnt the digits, and one device alone ends with the same weights.
 * Build it with: cc hybrid.c $(pkg-config --cflags --libs convoy) */
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

enum { BATCH = 32, SHARDS = 8, SIDE = 8, CLASSES = 10, EPOCHS = 4 };

/* ---- the network ----------------------------------------------------------------------------------- */

static cvy_value module1(cvy_graph *graph, cvy_value x) {
    x = cvy_conv2d(graph, x,
                   &(cvy_conv2d_args){.out_channels = 32, .kernel = 3, .padding = 1}); /* N,32,8,8 */
    return cvy_max_pool(graph, cvy_relu(graph, x), &(cvy_pool_args){.kernel = 2});     /* N,32,4,4 */
}

static cvy_value module2(cvy_graph *graph, cvy_value x) {
    x = cvy_conv2d(graph, x,
                   &(cvy_conv2d_args){.out_channels = 64, .kernel = 3, .padding = 1}); /* N,64,4,4 */
    x = cvy_flatten(graph, cvy_relu(graph, x));                                        /* N,1024 */
    return cvy_linear(graph, x, &(cvy_linear_args){.out_features = CLASSES});          /* N,10 */
}

static cvy_status build(cvy_graph *graph) {
    cvy_value images = cvy_input(graph, "images", 1, SIDE, SIDE), labels = cvy_labels(graph);
    cvy_stage(graph, 0); /* device_ids=[0, 1] */
    cvy_value x = module1(graph, images);
    cvy_stage(graph, 1); /* device_ids=[2, 3] */
    x = module2(graph, x);
    cvy_cross_entropy(graph, x, labels, 0);
    return cvy_graph_status(graph);
}

/* ---- training -------------------------------------------------------------------------------------- */

/* Top-1 of the training images in the last epoch, in percent, and the weights' hash. */
struct result {
    double top1;
    uint64_t hash;
};

static cvy_status train(cvy_session *session, cvy_loader *loader, struct result *result) {
    cvy_session_set_lr(session, 0.05);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        int64_t n = 0, n_right = 0;
        double loss_sum = 0;
        cvy_batch batch;
        cvy_status status;
        TRY(cvy_loader_start(loader, epoch));
        while ((status = cvy_loader_next(loader, &batch)) == CVY_OK) {
            cvy_metrics metrics;
            TRY(cvy_step(session, &batch)); /* loss_fn(model(inputs), labels).backward(); optimizer.step() */
            cvy_session_metrics(session, &metrics);
            loss_sum += metrics.loss * (double)metrics.n;
            n += metrics.n;
            n_right += metrics.top1;
        }
        if (status != CVY_END)
            return status;
        result->top1 = 100.0 * (double)n_right / (double)n;
        printf("  epoch %d: loss %.4f, top-1 %.2f %%\n", epoch + 1, loss_sum / (double)n, result->top1);
    }
    return cvy_weights_hash(session, &result->hash);
}

/* Which module is where, and what it takes. */
static cvy_status print_stages(const cvy_plan *plan) {
    char *table;
    TRY(cvy_plan_explain(plan, NULL, &table));
    printf("%s", table);
    free(table);
    return CVY_OK;
}

static cvy_status run(const cvy_plan_options *options, const cvy_graph *graph, cvy_loader *loader,
                      struct result *result) {
    cvy_plan *plan = NULL;
    cvy_session *session = NULL;
    cvy_status status = cvy_plan_new(graph, options, &plan);
    if (status == CVY_OK)
        status = print_stages(plan);
    if (status == CVY_OK)
        status = cvy_session_new(plan, &session);
    if (status == CVY_OK)
        status = train(session, loader, result);
    cvy_session_free(session);
    cvy_plan_free(plan);
    return status;
}

static cvy_status compare(cvy_graph *graph, cvy_loader *loader, struct result *hybrid,
                          struct result *single) {
    /* A mesh of two pipelines (data=2) of two stages (pipe=2). Devices are listed pipeline by pipeline: the first runs
       from cpu:0 to cpu:2, the second from cpu:1 to cpu:3. */
    cvy_plan_options options = {.devices = "cpu:0,cpu:2,cpu:1,cpu:3",
                                .strategy = "hybrid",
                                .mesh = "data=2,pipe=2",
                                .batch_size = BATCH,
                                .shards = SHARDS, /* four for each pipeline */
                                .threads_per_device = 1,
                                .optimizer = "sgd",
                                .optimizer_attributes = "momentum=0.9"};
    TRY(build(graph));
    TRY(run(&options, graph, loader, hybrid));
    options.devices = "cpu:0";
    options.strategy = "single"; /* which does not look at stages */
    options.mesh = NULL;
    return run(&options, graph, loader, single);
}

static cvy_status open_data(cvy_dataset **set, cvy_loader **loader) {
    cvy_loader_options options;
    cvy_loader_defaults(&options);
    options.batch_size = BATCH;
    TRY(cvy_dataset_open("digits", CVY_SPLIT_TRAIN, NULL, set));
    return cvy_loader_new(*set, &options, loader);
}

int main(void) {
    struct result hybrid = {0}, single = {0};
    cvy_dataset *set = NULL;
    cvy_loader *loader = NULL;
    cvy_graph *graph = NULL;
    cvy_status status = open_data(&set, &loader);
    if (status == CVY_OK)
        status = cvy_graph_new(&graph);
    if (status == CVY_OK)
        status = compare(graph, loader, &hybrid, &single);
    if (status != CVY_OK)
        fprintf(stderr, "hybrid: %s\n", cvy_error());
    cvy_graph_free(graph);
    cvy_loader_free(loader);
    cvy_dataset_free(set);
    if (status != CVY_OK)
        return cvy_exit_code(status);
    printf("weights: hybrid %016llx, single %016llx\n", (unsigned long long)hybrid.hash,
           (unsigned long long)single.hash);
    return hybrid.hash == single.hash && hybrid.top1 >= 90 ? EXIT_SUCCESS : EXIT_FAILURE;
}
