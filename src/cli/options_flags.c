/* The tables of flags. Names and defaults follow torchvision's references/classification/train.py where it has
   the flag; --batch-size is the global batch here, and a warm-up is linear unless told otherwise. */
#include "cli/options.h"

#include "graph/op.h"
#include "models/models.h"
#include "rt/backend.h"
#include "strategy/strategy.h"

#include <math.h>

static void add_name(struct flag_names *out, const char *name) {
    if (out->n < sizeof out->name / sizeof out->name[0])
        out->name[out->n++] = name;
}

static void models(struct flag_names *out) {
    size_t n;
    const struct cvy_model *const *table = cvy_model_table(&n);
    for (size_t i = 0; i < n; i++)
        add_name(out, table[i]->name);
}

static void strategies(struct flag_names *out) {
    size_t n;
    const struct cvy_strategy *const *table = cvy_strategy_table(&n);
    for (size_t i = 0; i < n; i++)
        add_name(out, table[i]->name);
}

static void pipelines(struct flag_names *out) {
    add_name(out, "1f1b");
    add_name(out, "gpipe");
}

static void policies(struct flag_names *out) {
    add_name(out, "ra");
    add_name(out, "ta_wide");
}

static void bad_images(struct flag_names *out) {
    add_name(out, "error");
    add_name(out, "skip");
}

static void backends(struct flag_names *out) {
    const char *names[32];
    size_t n = cvy_backend_names(names, 32);
    for (size_t i = 0; i < n; i++)
        add_name(out, names[i]);
}

static void optimizers(struct flag_names *out) {
    size_t n;
    const struct cvy_op *const *table = cvy_op_table(&n);
    for (size_t i = 0; i < n; i++)
        if (table[i]->flags & CVY_OP_OPTIMIZER)
            add_name(out, table[i]->name);
}

static void schedules(struct flag_names *out) {
    size_t n;
    const struct cvy_lr_schedule_kind *table = cvy_lr_schedule_table(&n);
    for (size_t i = 0; i < n; i++)
        add_name(out, table[i].name);
    for (size_t i = 0; i < n; i++)
        add_name(out, table[i].torch_name);
}

static void dtypes(struct flag_names *out) {
    add_name(out, "f32");
    add_name(out, "bf16");
    add_name(out, "f16");
}

static void precisions(struct flag_names *out) {
    add_name(out, "none");
    add_name(out, "bf16");
    add_name(out, "fp16");
}

static void warmups(struct flag_names *out) {
    add_name(out, "linear");
    add_name(out, "constant");
}

static void scales(struct flag_names *out) {
    add_name(out, "linear");
    add_name(out, "sqrt");
}

static const struct flag shape_flags[] = {
    FLAG("model", TEXT, model, "the network; `convoy models` says more", .choices = models),
    FLAG("num-classes", INT, num_classes, "classes of the last layer; 0: those of the data", .initial = "0",
         .min = 0, .max = 1 << 24),
    FLAG("input", SHAPE, input,
         "shape of an image that the model sees; default: the data's, else the model's own"),
};
GROUP(shape, "Model");

static const struct flag weights_flags[] = {
    FLAG("weights", TEXT, weights,
         "a safetensors or PyTorch .pth file with torchvision's names, or a folder that --output-dir wrote "
         "(its best/)",
         .value_name = "PATH", .is_place = true),
};
GROUP(weights, "Weights");

static const struct flag finetune_flags[] = {
    FLAG("replace-head", SWITCH, replace_head,
         "take all of --weights but the parameters whose shape depends on the number of classes: those are "
         "drawn anew",
         .initial = "false"),
};
GROUP(finetune, "Fine-tuning");

static const struct flag freeze_flags[] = {
    FLAG("freeze", TEXT, freeze,
         "parameters that keep their values: names with * and ?, as in \"conv1.*,bn1.*,layer?.*\"; they have "
         "no "
         "gradient and no state of the optimiser. As with requires_grad=False in PyTorch, the running "
         "statistics of "
         "their batch-norms go on",
         .value_name = "PATTERNS"),
};
GROUP(freeze, "Frozen layers");

static const struct flag data_flags[] = {
    FLAG("data", TEXT, data, "data set: digits, folder:DIR, ...; `convoy data` lists the formats",
         .value_name = "SPEC", .is_place = true),
    FLAG("data-path", TEXT, data_path, "the same as --data folder:DIR", .value_name = "DIR",
         .is_not_kept = true, .is_place = true),
};
GROUP(data, "Data");

static const struct flag prepare_flags[] = {
    FLAG("resize", INT, resize, "make the shorter side this long; 0: as it is", .initial = "0", .min = 0,
         .max = 1 << 16),
    FLAG("crop", SIZE, crop, "size of the crop: in the centre, in training at random when --pad is given"),
    FLAG("mean", CHANNELS, mean,
         "subtracted from each channel (of values from 0 to 1); one number stands for all; "
         "default: what suits the data"),
    FLAG("std", CHANNELS, std, "each channel is divided by this; as many numbers as --mean"),
    FLAG("exif", SWITCH, exif,
         "--no-exif: photographs as they are stored, as Pillow reads them, not upright as EXIF says; "
         "default: upright, "
         "or as the weights were trained"),
    FLAG("workers", INT, workers, "threads that decode images; 0: none of their own", .letter = 'j',
         .initial = "2", .min = 0, .max = 256, .is_own = true),
};
GROUP(prepare, "Preparation of images");

static const struct flag augment_flags[] = {
    FLAG("preset", TEXT, preset,
         "augmentation: none, cifar (random crop with padding 4, flip) or imagenet (random resized crop, "
         "flip; "
         "evaluation resizes to 8/7 of the crop); default: what suits the data",
         .value_name = "NAME"),
    FLAG("pad", INT, pad, "random crop after this zero padding; -1: as the preset says", .initial = "-1",
         .min = -1, .max = 1 << 12),
    FLAG("flip", SWITCH, flip,
         "flip half of the training images from left to right; default: as the preset says"),
    FLAG("color-jitter", CHANNELS, color_jitter,
         "change brightness, contrast and saturation by factors of up to 1 +- these, turn the hue by up to "
         "the fourth "
         "(to 0.5); one number is of the first three",
         .value_name = "B,C,S,H"),
    FLAG("auto-augment", TEXT, auto_augment,
         "RandAugment, two distortions of each training image, or TrivialAugmentWide, one of any magnitude",
         .choices = policies),
    FLAG("ra-magnitude", INT, ra_magnitude, "of RandAugment", .initial = "9", .min = 0, .max = 30),
    FLAG("random-erase", FLOAT, random_erase,
         "set a random box of training images to the mean, with this probability", .initial = "0", .min = 0,
         .max = 1),
    FLAG("ra-reps", INT, ra_reps,
         "repeated augmentation: each image that an epoch takes comes so many times, augmented anew; an "
         "epoch is as "
         "long as before, so it takes fewer",
         .initial = "1", .min = 1, .max = 1000),
};
GROUP(augment, "Augmentation, in training only");

static const struct flag bad_flags[] = {
    FLAG("on-bad-image", TEXT, on_bad_image,
         "error ends the training; skip takes the next image that can be read, and lists the bad ones at the "
         "end",
         .initial = "error", .choices = bad_images),
};
GROUP(bad, "Images that cannot be read, in training");

static const struct flag batch_flags[] = {
    FLAG("batch-size", INT, batch_size, "images of one step on all devices together", .letter = 'b',
         .initial = "32", .min = 1, .max = 1 << 24),
};
GROUP(batch, "Batch");

static const struct flag devices_flags[] = {
    FLAG("devices", TEXT, devices, "cpu:0-3, or a list cpu:0,cpu:1, or auto; default: one with all cores",
         .value_name = "LIST", .is_own = true),
    FLAG("elastic", SWITCH, elastic,
         "leave out those of --devices that are not here (any more): the same bits", .initial = "false",
         .is_own = true),
    FLAG("strategy", TEXT, strategy, "default: single on one device, else ddp", .choices = strategies),
    FLAG("mesh", TEXT, mesh, "of hybrid, replicas and stages: data=D,pipe=P"),
    FLAG("schedule", TEXT, schedule, "of pipeline and hybrid, default 1f1b", .choices = pipelines),
    FLAG("shards", INT, shards,
         "S, parts of a batch: with S and T fixed any number of devices gives the same bits; 0: one a "
         "device, in pipelines four",
         .initial = "0", .min = 0, .max = 65536),
    FLAG(
        "fast-reduce", SWITCH, fast_reduce,
        "GPUs add gradients in NCCL's order, not in that of the shards: results depend on the number of GPUs",
        .initial = "false"),
    FLAG("device-memory", BYTES, device_memory,
         "refuse a plan that takes more memory on a device, such as 500M or 2G"),
    FLAG("bucket-mb", FLOAT, bucket_mb, "gradients are reduced in buckets of so many MB", .initial = "25",
         .min = 0.001, .max = 1e6),
    FLAG("first-bucket-mb", FLOAT, first_bucket_mb, "the first bucket: small, to start early", .initial = "1",
         .min = 0.001, .max = 1e6),
    FLAG("timeout", FLOAT, timeout_s, "seconds that a device waits for another before it counts as lost",
         .initial = "30", .min = 0.1, .max = 1e6, .is_own = true),
};
GROUP(devices, "Devices");

static const struct flag kernels_flags[] = {
    FLAG("backend", TEXT, backend, "default: what the devices say", .choices = backends),
    FLAG("threads-per-device", INT, threads, "T; 0: the device's cores", .initial = "0", .min = 0,
         .max = 4096),
    FLAG(
        "conv-algo", TEXT, conv_algo,
        "of convolutions: auto, direct or winograd, and exceptions by shape, which `convoy bench tune` finds",
        .initial = "auto"),
    FLAG("amp", TEXT, amp,
         "mixed precision: layers compute in 16 bits, parameters stay float32; bf16 on processors that have "
         "it",
         .initial = "none", .choices = precisions),
    FLAG("nondeterministic", SWITCH, nondeterministic,
         "GPUs may add in any order: faster, but no two runs have the same bits", .initial = "false"),
    FLAG("tf32", SWITCH, tf32, "GPUs may round the factors of float32 products to 10 bits: faster",
         .initial = "false"),
    FLAG("graphs", SWITCH, graphs,
         "GPUs are given what comes again at each step as one CUDA graph; --no-graphs: kernel by kernel",
         .initial = "true"),
};
GROUP(kernels, "Kernels");

static const struct flag step_flags[] = {
    FLAG("accumulate", INT, accumulate, "batches that make one update: their gradients are added",
         .initial = "1", .min = 1, .max = 1 << 20),
    FLAG("clip-grad-norm", FLOAT, clip_grad_norm,
         "the largest norm of all gradients together: if it is larger, they are scaled down to it; 0: they "
         "stay",
         .initial = "0", .min = 0, .max = INFINITY),
    FLAG("sync-bn", SWITCH, sync_bn,
         "batch-norm normalises over all shards of a batch, not within each; of single, dp and ddp",
         .initial = "false"),
    FLAG("recompute", SWITCH, recompute,
         "the backward pass makes again what batch-norms gave, instead of keeping it: less memory, the same "
         "weights",
         .initial = "false"),
};
GROUP(step, "Training step");

static const struct flag optimizer_flags[] = {
    FLAG("opt", TEXT, opt, "optimiser", .initial = "sgd", .choices = optimizers),
    FLAG("lr", FLOAT, lr, "learning rate", .initial = "0.1", .min = 0, .max = INFINITY),
    FLAG("momentum", FLOAT, momentum, "default 0.9 where the optimiser has it", .min = 0, .max = INFINITY),
    FLAG("weight-decay", FLOAT, weight_decay, "default 1e-4", .alias = "wd", .min = 0, .max = INFINITY),
    FLAG("norm-weight-decay", FLOAT, norm_weight_decay,
         "of the weights of normalisations, and of their biases; default: as --weight-decay", .min = 0,
         .max = INFINITY),
    FLAG("bias-weight-decay", FLOAT, bias_weight_decay,
         "of all biases, those of normalisations too; default: as --weight-decay", .min = 0, .max = INFINITY),
    FLAG("dampening", FLOAT, dampening, "of the momentum", .min = 0, .max = INFINITY),
    FLAG("nesterov", SWITCH, nesterov, "Nesterov momentum"),
    FLAG("opt-args", TEXT, opt_args, "more attributes of the optimiser: \"beta1=0.9 eps=1e-8\"",
         .value_name = "TEXT"),
    FLAG("label-smoothing", FLOAT, label_smoothing, "of the cross-entropy", .initial = "0", .min = 0,
         .max = 1),
    FLAG("mixup-alpha", FLOAT, mixup_alpha,
         "mix images, and their labels, with others of their shard: Beta(X, X) says how much", .initial = "0",
         .min = 0, .max = 1e6),
    FLAG("cutmix-alpha", FLOAT, cutmix_alpha,
         "replace a box of each image by another's; with both, one of the two by chance", .initial = "0",
         .min = 0, .max = 1e6),
};
GROUP(optimizer, "Optimiser");

static const struct flag schedule_flags[] = {
    FLAG("lr-base", FLOAT, lr_base,
         "instead of --lr: the rate for updates of --lr-base-size images; it is scaled to those that there "
         "are, "
         "--batch-size times --accumulate",
         .min = 0, .max = INFINITY),
    FLAG("lr-base-size", INT, lr_base_size, "the batch size that --lr-base is for", .initial = "256",
         .min = 1, .max = 1 << 24),
    FLAG("lr-base-scale", TEXT, lr_base_scale, "in proportion to the batch size, or to its root",
         .initial = "linear", .choices = scales),
    FLAG("lr-scheduler", TEXT, lr_scheduler, "how the rate goes on, update by update", .initial = "step",
         .choices = schedules),
    FLAG("lr-step-size", FLOAT, lr_step_size, "step: epochs between two steps", .initial = "30", .min = 0,
         .max = INFINITY),
    FLAG("lr-gamma", FLOAT, lr_gamma, "step: factor", .initial = "0.1", .min = 0, .max = INFINITY),
    FLAG("lr-min", FLOAT, lr_min, "cosine: the rate at the end", .initial = "0", .min = 0, .max = INFINITY),
    FLAG("lr-warmup-epochs", FLOAT, lr_warmup_epochs, "epochs before the schedule begins", .initial = "0",
         .min = 0, .max = INFINITY),
    FLAG("lr-warmup-method", TEXT, lr_warmup_method, "the rate rises, or waits and jumps",
         .initial = "linear", .choices = warmups),
    FLAG("lr-warmup-decay", FLOAT, lr_warmup_decay, "the warm-up begins at lr times this", .initial = "0.01",
         .min = 0, .max = INFINITY),
};
GROUP(schedule, "Learning rate");

static const struct flag ema_flags[] = {
    FLAG("model-ema", SWITCH, model_ema,
         "keep an average of the weights, judge it after each epoch, and save it as ema.safetensors",
         .initial = "false"),
    FLAG("model-ema-steps", INT, model_ema_steps, "updates from one averaging to the next", .initial = "32",
         .min = 1, .max = 1 << 24),
    FLAG("model-ema-decay", FLOAT, model_ema_decay,
         "D: each time the average keeps 1 - (1 - D) x images of an update x steps / epochs of itself",
         .initial = "0.99998", .min = 0, .max = 1),
};
GROUP(ema, "Average of the weights");

static const struct flag run_flags[] = {
    FLAG("epochs", INT, epochs, "passes over the training set", .initial = "90", .min = 1, .max = 1 << 24),
    FLAG("progressive-resize", TEXT, progressive_resize,
         "training images grow from this size in the first epoch to that in the last, in multiples of 32, or "
         "of a third number; validation stays at --input",
         .value_name = "160:224"),
    FLAG("early-stop", INT, early_stop,
         "end after so many epochs in which no validation was better than the best before; 0: never",
         .initial = "0", .min = 0, .max = 1 << 24),
    FLAG("shuffle", SWITCH, shuffle, "a new order each epoch; --no-shuffle: as the images lie",
         .initial = "true"),
    FLAG("output-dir", TEXT, output_dir,
         "run.json, metrics.jsonl, the same for TensorBoard and the checkpoints last/ and best/ go here; "
         "default: nothing is written",
         .value_name = "DIR", .is_not_kept = true, .is_place = true),
    FLAG("checkpoint-every", INT, checkpoint_every,
         "updates between two checkpoints last/ in the middle of an epoch; 0: none, only at its end",
         .initial = "0", .min = 0, .max = INFINITY),
    FLAG("overwrite", SWITCH, overwrite, "start anew in a folder that holds a run already",
         .initial = "false", .is_not_kept = true, .is_own = true),
    FLAG("profile", SWITCH, profile,
         "write what each instruction took into --output-dir: trace.json for ui.perfetto.dev, profile.json "
         "with the "
         "sums",
         .initial = "false", .is_not_kept = true),
    FLAG(
        "resume", TEXT, resume,
        "go on with the run in a folder that --output-dir wrote, with its flags, or from a checkpoint in it; "
        "auto: from the newest whole one in --output-dir, or begin where there is none",
        .value_name = "DIR|auto", .is_not_kept = true, .is_place = true),
    FLAG("test-only", SWITCH, test_only, "only evaluate", .initial = "false", .is_not_kept = true),
    FLAG("print-freq", INT, print_freq, "steps between two lines of output and of metrics.jsonl",
         .initial = "10", .min = 1, .max = INFINITY, .is_own = true),
};
GROUP(run, "Run");

static const struct flag seed_flags[] = {
    FLAG("seed", INT, seed, "of initial weights, order, augmentation and dropout", .initial = "0", .min = 0,
         .max = INFINITY),
};
GROUP(seed, "Seed");

static const struct flag dtype_flags[] = {
    FLAG("dtype", TEXT, dtype, "not f32: the operators that take it, with inputs of that type",
         .initial = "f32", .choices = dtypes),
};
GROUP(dtype, "Types");

static const struct flag json_flags[] = {
    FLAG("json", SWITCH, json, "print JSON instead of text", .initial = "false", .is_not_kept = true,
         .is_own = true),
};
GROUP(json, "Output");

static const struct flag verbose_flags[] = {
    FLAG("verbose", SWITCH, verbose, "memory, links to other devices, versions of libraries",
         .initial = "false", .is_not_kept = true),
};
GROUP(verbose, "Details");

static const struct flag common_flags[] = {
    FLAG("config", TEXT, config, "flags from a JSON file such as run.json; the command line wins",
         .value_name = "FILE", .is_not_kept = true, .is_own = true),
    FLAG("help", SWITCH, help, "print this", .letter = 'h', .initial = "false", .is_not_kept = true),
};
GROUP(common, "General");
