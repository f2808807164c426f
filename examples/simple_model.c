/* The first program: a network of two layers takes a few steps on two devices.
 *
 *     graph     what is computed for a batch of images
 *     plan      the graph bound to devices and a strategy: here a replica on each of two devices ("ddp")
 *     session   the plan with weights and memory, which runs
 *
 * The loss is simply the mean of what the network yields, so every step must make it smaller.
 * Build it with: cc simple_model.c $(pkg-config --cflags --libs convoy) */
#include <convoy/convoy.h>

#include <stdio.h>

enum { BATCH = 8, SIDE = 12, N_STEPS = 10 };

/* Describes the network; nothing runs yet. Behind each line: the shape of its value, where N are the images. */
static cvy_status build(cvy_graph *graph) {
    cvy_value x = cvy_input(graph, "images", 1, SIDE, SIDE); /* N,1,12,12 */
    x = cvy_conv2d(graph, x,
                   &(cvy_conv2d_args){.name = "conv", .out_channels = 1, .kernel = 3}); /* N,1,10,10 */
    x = cvy_linear(graph, x, &(cvy_linear_args){.name = "fc", .out_features = 10});     /* N,1,10,10 */
    x = cvy_mean(graph, x);                                                             /* N */
    cvy_output(graph, "loss", cvy_batch_mean(graph, x));                                /* 1 */
    return cvy_graph_status(graph); /* what went wrong first, if anything did */
}

static cvy_status train(cvy_session *session) {
    float images[BATCH * SIDE * SIDE];
    for (int i = 0; i < BATCH * SIDE * SIDE; i++)
        images[i] = (float)(i % 7) / 7;
    /* The batch is that of the whole step: the devices share it. A loader makes such batches from a data set. */
    const cvy_batch batch = {
        .n = BATCH, .channels = 1, .height = SIDE, .width = SIDE, .dtype = CVY_F32, .images = images};
    cvy_session_set_lr(session, 0.1);
    for (int step = 0; step < N_STEPS; step++) {
        cvy_metrics metrics;
        cvy_status status = cvy_step(session, &batch); /* forward, backward, all-reduce, update */
        if (status != CVY_OK)
            return status;
        cvy_session_metrics(session, &metrics);
        printf("step %d: loss %.4f\n", step, metrics.loss);
    }
    return CVY_OK;
}

int main(void) {
    const cvy_plan_options options = {.devices = "cpu:0,cpu:1", /* two shares of this machine's cores */
                                      .strategy = "ddp",
                                      .batch_size = BATCH,
                                      .threads_per_device = 1,
                                      .optimizer = "sgd"};
    cvy_graph *graph = NULL;
    cvy_plan *plan = NULL;
    cvy_session *session = NULL;
    cvy_status status = cvy_graph_new(&graph);
    if (status == CVY_OK)
        status = build(graph);
    if (status == CVY_OK)
        status = cvy_plan_new(graph, &options, &plan);
    if (status == CVY_OK)
        status = cvy_session_new(plan, &session);
    if (status == CVY_OK)
        status = train(session);
    if (status != CVY_OK)
        fprintf(stderr, "simple_model: %s\n", cvy_error());
    cvy_session_free(session); /* in this order; NULL is fine */
    cvy_plan_free(plan);
    cvy_graph_free(graph);
    return cvy_exit_code(status);
}
