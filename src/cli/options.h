/* What the flags of all subcommands set: one struct, and groups of flags that subcommands share. */
#ifndef CVY_CLI_OPTIONS_H
#define CVY_CLI_OPTIONS_H

#include "cli/flags.h"
#include "engine/schedule.h"
#include "engine/task.h"

struct options { /* in the order of the groups */
    const char *model;
    int64_t num_classes;
    int64_t input[3];
    const char *weights, *freeze;
    int replace_head;

    const char *data, *data_path, *preset;
    int64_t workers, resize, crop[2], pad;
    int flip;
    struct flag_channels color_jitter;
    const char *auto_augment;
    int64_t ra_magnitude;
    double random_erase;
    int64_t ra_reps;
    const char *on_bad_image;
    struct flag_channels mean, std;
    int exif;

    int64_t batch_size, accumulate;
    double clip_grad_norm;
    int sync_bn, recompute;

    const char *devices, *strategy, *mesh, *schedule, *backend, *conv_algo, *amp;
    int64_t shards, threads, device_memory;
    int tf32, nondeterministic, fast_reduce, graphs, elastic;
    double bucket_mb, first_bucket_mb, timeout_s;

    const char *opt, *opt_args;
    double momentum, weight_decay, norm_weight_decay, bias_weight_decay, dampening, label_smoothing;
    double mixup_alpha, cutmix_alpha;
    int nesterov;

    const char *lr_scheduler, *lr_warmup_method;
    const char *lr_base_scale;
    int64_t lr_base_size;
    double lr, lr_base, lr_min, lr_step_size, lr_gamma, lr_warmup_epochs, lr_warmup_decay;

    int model_ema;
    int64_t model_ema_steps;
    double model_ema_decay;

    int64_t epochs, print_freq, early_stop, checkpoint_every, check_sync;
    const char *progressive_resize, *on_nan;
    int64_t seed;
    int shuffle, test_only;
    const char *resume, *output_dir;
    int overwrite, profile;
    int64_t max_restarts;

    const char *input_file, *output_file; /* predict */
    int64_t topk;
    const char *pass;  /* explain */
    int json;          /* what prints a table */
    int verbose;       /* devices */
    const char *dtype; /* check */
    const char *fix;   /* data check */
    const char *to;    /* data pack */
    const char *out;   /* of data show */
    int64_t columns, rows, epoch;
    int64_t max_side, shard_size;

    int64_t steps, rounds; /* bench */
    const char *timeline, *bench_a, *bench_b;
    const char *tuning, *tuning_out; /* to read; to write */
    int any_shards;

    const char *root; /* doctor */
    int quick;

    const char *config;
    int help;

    /* not flags: what the run works with */
    cvy_world *world;            /* of a command that is collective */
    _Atomic int rank;            /* of this process in it; whoever logs reads it */
    struct interrupt *interrupt; /* open */
};

extern const struct flag_group group_shape, group_weights, group_finetune, group_freeze, group_data,
    group_prepare, group_augment, group_bad, group_batch, group_fitting_batch, group_devices, group_kernels,
    group_step, group_optimizer, group_schedule, group_ema, group_run, group_guards, group_seed, group_dtype,
    group_json, group_verbose, group_common;

/* The parts of the engine's options that flags say. Texts are owned by values->pool or argv. */
cvy_status options_loader(const struct options *options, cvy_loader_options *out);
void options_plan(const struct options *options, cvy_plan_options *out);
/* The attributes of --opt as text: --momentum and its like, then --opt-args. CVY_ERR_USAGE names a flag that the
   optimiser has no use for. */
cvy_status options_optimizer(struct flag_values *values, const char **attributes);
/* For the help of commands with these groups: every optimiser with its attributes, every schedule's formula. */
void options_optimizer_help(struct cvy_text *out);
struct cvy_lr_schedule options_schedule(const struct options *options);
/* With --lr-base sets --lr by the rule, unless the command line gives that; prints how. CVY_ERR_USAGE: it gives
   both. */
cvy_status options_scale_lr(struct flag_values *values);
/* Replaces --batch-size auto by a number; rank 0 prints why it is that. CVY_ERR_USAGE: nothing fits. Collective. */
cvy_status options_fit_batch(struct flag_values *values, const cvy_log_sink *log);
/* All of a task; the optimiser only for training. */
cvy_status options_task(struct flag_values *values, enum cvy_task_kind kind, const cvy_log_sink *log,
                        struct cvy_task_options *out);

/* A line of a table of flags: its name, type (flags.h), field of struct options, help, and what else it needs. */
#define FLAG(name_, type_, field, help_, ...)                                                          \
    {                                                                                                  \
        .name = name_, .type = FLAG_##type_, .offset = offsetof(struct options, field), .help = help_, \
        __VA_ARGS__                                                                                    \
    }

/* group_ID, of the table ID_flags. */
#define GROUP(id, title_)                  \
    const struct flag_group group_##id = { \
        .title = title_, .flags = id##_flags, .n = sizeof id##_flags / sizeof id##_flags[0]}

#endif
