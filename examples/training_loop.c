/* The training loop: LeNet-5 learns the bundled handwritten digits on two devices, is judged on all held-out
 * images after each epoch, and its weights are saved. Ends with 0 when it got at least 95 % of them right.
 *
 * The result is the same, bit for bit, on any number of devices, as long as SHARDS stays: try "cpu:0".
 * Build it with: cc training_loop.c $(pkg-config --cflags --libs convoy) */
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

enum { BATCH = 32, SHARDS = 2, SIDE = 28, EPOCHS = 12 };

/* Everything that the program opens, to be freed in the end. */
struct run {
    cvy_dataset *train_set, *val_set;
    cvy_loader *train, *val;
    cvy_plan *plan;
    cvy_session *session;
};

/* ---- before the loop ------------------------------------------------------------------------------- */

static cvy_status open_data(struct run *run) {
    cvy_loader_options options;
    cvy_loader_defaults(&options); /* shuffled and augmented, with two decoding threads */
    options.batch_size = BATCH;
    options.resize = SIDE; /* from 8x8 */
    options.pad = 3;       /* then a crop of that size at random, up to 3 pixels off the centre */
    options.has_mean_std = true;
    options.mean[0] = 0.3f;
    options.std[0] = 0.4f;
    TRY(cvy_dataset_open("digits", CVY_SPLIT_TRAIN, NULL, &run->train_set));
    TRY(cvy_dataset_open("digits", CVY_SPLIT_VAL, NULL, &run->val_set));
    TRY(cvy_loader_new(run->train_set, &options, &run->train));
    options.shuffle = options.augment = false;
    return cvy_loader_new(run->val_set, &options, &run->val);
}

static cvy_status build(cvy_graph *graph, int64_t num_classes) {
    cvy_value images = cvy_input(graph, "images", 1, SIDE, SIDE), labels = cvy_labels(graph);
    cvy_value logits = cvy_model(graph, "lenet5", images, num_classes); /* N,num_classes */
    cvy_output(graph, "logits", logits);
    cvy_cross_entropy(graph, logits, labels, 0); /* this names the loss and the counts of hits by itself */
    return cvy_graph_status(graph);
}

static cvy_status open_session(struct run *run) {
    const cvy_plan_options options = {.devices = "cpu:0,cpu:1",
                                      .strategy = "ddp",
                                      .batch_size = BATCH,
                                      .shards = SHARDS,
                                      .threads_per_device = 1,
                                      .optimizer = "sgd",
                                      .optimizer_attributes = "momentum=0.9 weight_decay=5e-4",
                                      .seed = 0};
    cvy_graph *graph;
    TRY(cvy_graph_new(&graph));
    cvy_status status = build(graph, cvy_dataset_classes(run->train_set));
    if (status == CVY_OK)
        status = cvy_plan_new(graph, &options, &run->plan); /* keeps a copy of the graph */
    cvy_graph_free(graph);
    return status == CVY_OK ? cvy_session_new(run->plan, &run->session) : status;
}

/* ---- the loop -------------------------------------------------------------------------------------- */

/* One pass over the training set. */
static cvy_status train(struct run *run, int epoch, double *mean_loss) {
    const int64_t n_images = cvy_dataset_size(run->train_set);
    int64_t n_seen = 0;
    double loss_sum = 0;
    cvy_batch batch;
    cvy_status status;
    TRY(cvy_loader_start(run->train, epoch));
    while ((status = cvy_loader_next(run->train, &batch)) == CVY_OK) {
        double epochs_done = epoch + (double)n_seen / (double)n_images;
        cvy_session_set_lr(run->session, 0.05 * (1 - epochs_done / EPOCHS));
        TRY(cvy_forward(run->session, &batch)); /* output = model(data); loss = criterion(output, target) */
        TRY(cvy_backward(run->session));        /* loss.backward(), with gradients summed over the devices */
        TRY(cvy_update(run->session));          /* optimizer.step(); optimizer.zero_grad() */
        cvy_metrics metrics;
        cvy_session_metrics(run->session, &metrics);
        loss_sum += metrics.loss * (double)metrics.n;
        n_seen += metrics.n; /* the last batch may be smaller */
    }
    *mean_loss = loss_sum / (double)n_seen;
    return status == CVY_END ? CVY_OK : status; /* anything else than the end is an error */
}

/* Counts the held-out images whose label scores highest: each image once, whatever the batch size. */
static cvy_status evaluate(struct run *run, int64_t *n_right) {
    int32_t ranks[BATCH];
    cvy_batch batch;
    cvy_status status;
    *n_right = 0;
    TRY(cvy_loader_start(run->val, 0));
    while ((status = cvy_loader_next(run->val, &batch)) == CVY_OK) {
        TRY(cvy_evaluate(run->session, &batch, NULL, ranks, NULL));
        for (int64_t i = 0; i < batch.n; i++)
            *n_right += ranks[i] == 0; /* no class scores above the label's */
    }
    return status == CVY_END ? CVY_OK : status;
}

static cvy_status learn(struct run *run, double *top1) {
    const int64_t n_val = cvy_dataset_size(run->val_set);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        double loss = 0;
        int64_t n_right = 0;
        TRY(train(run, epoch, &loss));
        TRY(evaluate(run, &n_right));
        *top1 = 100.0 * (double)n_right / (double)n_val;
        printf("epoch %2d: training loss %.4f, top-1 %.2f %% (%lld of %lld)\n", epoch + 1, loss, *top1,
               (long long)n_right, (long long)n_val);
    }
    return cvy_save_weights(run->session, "lenet5.safetensors");
}

int main(void) {
    struct run run = {.session = NULL};
    double top1 = 0;
    cvy_status status = open_data(&run);
    if (status == CVY_OK)
        status = open_session(&run);
    if (status == CVY_OK)
        status = learn(&run, &top1);
    if (status != CVY_OK)
        fprintf(stderr, "training_loop: %s\n", cvy_error());
    cvy_session_free(run.session); /* each before what it was made of */
    cvy_plan_free(run.plan);
    cvy_loader_free(run.train);
    cvy_loader_free(run.val);
    cvy_dataset_free(run.train_set);
    cvy_dataset_free(run.val_set);
    if (status != CVY_OK)
        return cvy_exit_code(status);
    return top1 >= 95 ? EXIT_SUCCESS : EXIT_FAILURE;
}
