/* Distributed data parallel: one process for each rank, which together train one network. The counterpart of PyTorch's
 * tutorial "Getting Started with Distributed Data Parallel". Run it alone, or as many as you like:
 *
 *     ./distributed
 *     mpirun -n 4 ./distributed
 *
 * Every process does the same calls and reads its own part of each batch; what only one should do, rank 0 does. SHARDS
 * is fixed, so 1, 2 and 4 processes end with the same weights, bit for bit. Ends with 0 when at least 90 % of the
 * held-out images are right.
 * Build it with: cc distributed.c $(pkg-config --cflags --libs convoy) */
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

enum { BATCH = 32, SHARDS = 4, EPOCHS = 8 };

/* Everything that a process opens, to be freed in the end. */
struct run {
    cvy_world *world;
    cvy_dataset *train_set, *val_set;
    cvy_loader *train, *val;
    cvy_plan *plan;
    cvy_session *session;
};

static int is_first(const struct run *run) { return cvy_world_rank(run->world) == 0; }

/* ---- before the loop ------------------------------------------------------------------------------- */

static cvy_status build(cvy_graph *graph, int64_t num_classes) {
    cvy_value x = cvy_input(graph, "images", 1, 8, 8), labels = cvy_labels(graph); /* N,1,8,8 and N */
    x = cvy_conv2d(graph, x,
                   &(cvy_conv2d_args){.out_channels = 32, .kernel = 3, .padding = 1}); /* N,32,8,8 */
    x = cvy_max_pool(graph, cvy_relu(graph, x), &(cvy_pool_args){.kernel = 2});        /* N,32,4,4 */
    x = cvy_conv2d(graph, x,
                   &(cvy_conv2d_args){.out_channels = 64, .kernel = 3, .padding = 1}); /* N,64,4,4 */
    x = cvy_flatten(graph, cvy_relu(graph, x));                                        /* N,1024 */
    x = cvy_linear(graph, x, &(cvy_linear_args){.out_features = num_classes});
    cvy_cross_entropy(graph, x, labels, 0);
    return cvy_graph_status(graph);
}

/* DDP(model, device_ids=[rank]): one device of this process, among those of all processes in the world. */
static cvy_status open_session(struct run *run) {
    const cvy_plan_options options = {.devices = "cpu:0", /* of this process's share of the cores */
                                      .strategy = "ddp",
                                      .world = run->world,
                                      .batch_size = BATCH,
                                      .shards = SHARDS,
                                      .threads_per_device = 1,
                                      .optimizer = "sgd",
                                      .optimizer_attributes = "momentum=0.9"};
    cvy_graph *graph;
    TRY(cvy_graph_new(&graph));
    cvy_status status = build(graph, cvy_dataset_classes(run->train_set));
    if (status == CVY_OK)
        status =
            cvy_plan_new(graph, &options, &run->plan); /* finds out whether all processes mean the same */
    cvy_graph_free(graph);
    return status == CVY_OK ? cvy_session_new(run->plan, &run->session) : status;
}

/* DataLoader(dataset, sampler=DistributedSampler(dataset)): the batch is that of all processes together. */
static cvy_status open_loaders(struct run *run) {
    cvy_loader_options options;
    cvy_loader_defaults(&options);
    options.batch_size = BATCH;
    options.pad = 1; /* crops at random, up to one pixel off the centre */
    TRY(cvy_loader_new(run->train_set, &options, &run->train));
    TRY(cvy_plan_share(run->plan, run->train)); /* reads what this process's device will work on */
    options.shuffle = options.augment = false;
    TRY(cvy_loader_new(run->val_set, &options, &run->val));
    return cvy_plan_share(run->plan, run->val);
}

static cvy_status open_all(struct run *run) {
    TRY(cvy_world_open(0, NULL, &run->world)); /* dist.init_process_group("gloo") */
    TRY(cvy_dataset_open("digits", CVY_SPLIT_TRAIN, NULL, &run->train_set));
    TRY(cvy_dataset_open("digits", CVY_SPLIT_VAL, NULL, &run->val_set));
    TRY(open_session(run));
    TRY(open_loaders(run));
    int64_t first, n;
    TRY(cvy_plan_images(run->plan, 0, BATCH, &first, &n));
    if (is_first(run))
        printf("%d process%s; this one reads %lld of each batch's %d images\n", cvy_world_size(run->world),
               cvy_world_size(run->world) == 1 ? "" : "es", (long long)n, BATCH);
    return CVY_OK;
}

/* ---- the loop -------------------------------------------------------------------------------------- */

static cvy_status train(struct run *run, int epoch, double *mean_loss) {
    double loss_sum = 0, n_seen = 0;
    cvy_batch batch;
    cvy_status status;
    cvy_session_set_lr(run->session, 0.05 * (EPOCHS - epoch) / EPOCHS);
    TRY(cvy_loader_start(run->train, epoch)); /* sampler.set_epoch(epoch): another order, the same for all */
    while ((status = cvy_loader_next(run->train, &batch)) == CVY_OK) {
        cvy_metrics metrics;
        TRY(cvy_step(run->session, &batch)); /* loss.backward() with its all-reduce; optimizer.step() */
        cvy_session_metrics(run->session, &metrics); /* of the whole batch, in every process */
        loss_sum += metrics.loss * (double)metrics.n;
        n_seen += (double)metrics.n;
    }
    *mean_loss = loss_sum / n_seen;
    return status == CVY_END ? CVY_OK : status;
}

/* Each image is judged once, by one of the processes, and all learn the result. */
static cvy_status evaluate(struct run *run, double *top1) {
    int32_t ranks[BATCH];
    int64_t n_right = 0;
    cvy_batch batch;
    cvy_status status;
    TRY(cvy_loader_start(run->val, 0));
    while ((status = cvy_loader_next(run->val, &batch)) == CVY_OK) {
        TRY(cvy_evaluate(run->session, &batch, NULL, ranks, NULL));
        for (int64_t i = 0; i < batch.n; i++)
            n_right += ranks[i] == 0; /* no class scores above the label's */
    }
    *top1 = 100.0 * (double)n_right / (double)cvy_dataset_size(run->val_set);
    return status == CVY_END ? CVY_OK : status;
}

static cvy_status learn(struct run *run, double *top1) {
    uint64_t hash;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        double loss;
        TRY(train(run, epoch, &loss));
        TRY(evaluate(run, top1));
        if (is_first(run)) /* if rank == 0: print(…) */
            printf("epoch %d: training loss %.4f, top-1 %.2f %%\n", epoch + 1, loss, *top1);
    }
    TRY(cvy_save_weights(run->session, "digits.safetensors")); /* all call it, rank 0 writes */
    TRY(cvy_weights_hash(run->session, &hash));
    if (is_first(run))
        printf("weights %016llx\n", (unsigned long long)hash);
    return CVY_OK;
}

int main(void) {
    struct run run = {.session = NULL};
    double top1 = 0;
    cvy_status status = open_all(&run);
    if (status == CVY_OK)
        status = learn(&run, &top1);
    if (status != CVY_OK)
        fprintf(stderr, "distributed: rank %d: %s\n", cvy_world_rank(run.world), cvy_error());
    cvy_session_free(run.session); /* each before what it was made of */
    cvy_plan_free(run.plan);
    cvy_loader_free(run.train);
    cvy_loader_free(run.val);
    cvy_dataset_free(run.train_set);
    cvy_dataset_free(run.val_set);
    cvy_status closed = cvy_world_close(run.world, status); /* dist.destroy_process_group() */
    if (status == CVY_OK && closed != CVY_OK)
        fprintf(stderr, "distributed: %s\n", cvy_error());
    status = status == CVY_OK ? closed : status;
    if (status != CVY_OK)
        return cvy_exit_code(status);
    return top1 >= 90 ? EXIT_SUCCESS : EXIT_FAILURE;
}
