/* What the flags of all subcommands set: one struct, and groups of flags that subcommands share. */
#ifndef CVY_CLI_OPTIONS_H
#define CVY_CLI_OPTIONS_H

#include "cli/flags.h"
#include "engine/schedule.h"
#include "engine/task.h"

struct options {
    /* model */
    const char *model, *weights;
    int64_t num_classes;
    int64_t input[3];
    /* data */
    const char *data, *data_path, *preset;
    int64_t batch_size, workers, resize, crop[2], pad;
    int flip, shuffle;
    struct flag_channels mean, std;
    /* devices */
    const char *devices, *strategy, *backend, *conv_algo;
    int64_t shards, threads;
    double bucket_mb, first_bucket_mb, timeout_s;
    /* optimiser and learning rate */
    const char *opt, *opt_args;
    double momentum, weight_decay, dampening;
    int nesterov;
    double lr, lr_min, lr_step_size, lr_gamma, lr_warmup_epochs, lr_warmup_decay;
    const char *lr_scheduler, *lr_warmup_method;
    double label_smoothing;
    /* run */
    int64_t epochs, seed, print_freq;
    const char *resume, *output_dir, *config;
    int test_only;
    /* predict, explain, lists */
    const char *input_file, *output_file, *pass;
    int64_t topk;
    int json, help;
};

extern const struct flag_group group_model, group_data, group_batch, group_devices, group_optimizer,
    group_schedule, group_run, group_common;

/* The parts of the engine's options that flags say. Texts are owned by values->pool. */
cvy_status options_loader(const struct options *options, cvy_loader_options *out);
cvy_status options_plan(struct flag_values *values, cvy_plan_options *out);
/* The attributes of --opt as text: --momentum and its like, then --opt-args; refuses those it does not have. */
cvy_status options_optimizer(struct flag_values *values, const char **attributes);
struct cvy_lr_schedule options_schedule(const struct options *options);
/* Everything of the above; optimiser and learning rate only when training. */
cvy_status options_task(struct flag_values *values, bool is_training, struct cvy_task_options *out);

#endif
