/* See options.h: from flags to the engine's options. */
#include "cli/options.h"

#include "graph/op.h"

#include <math.h>
#include <string.h>

static const struct options *options_of(const struct flag_values *values) { return values->options; }

cvy_status options_loader(const struct options *o, cvy_loader_options *out) {
    cvy_loader_options loader;
    cvy_loader_defaults(&loader);
    loader.batch_size = o->batch_size;
    loader.accumulate = o->accumulate;
    loader.workers = (int)o->workers;
    loader.seed = (uint64_t)o->seed;
    loader.shuffle = o->shuffle != 0;
    loader.preset = o->preset;
    loader.resize = o->resize;
    loader.crop[0] = o->crop[0];
    loader.crop[1] = o->crop[1];
    loader.pad = o->pad;
    loader.flip = o->flip;
    loader.random_erase = o->random_erase;
    loader.auto_augment = o->auto_augment;
    loader.ra_magnitude = (int)o->ra_magnitude;
    for (int i = 0; i < o->color_jitter.n || (o->color_jitter.n == 1 && i < 3); i++)
        loader.color_jitter[i] = o->color_jitter.value[o->color_jitter.n == 1 ? 0 : i];
    if (o->mean.n != o->std.n)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "--mean has %d numbers, --std %d: give both, one number for each channel or one for all",
            o->mean.n, o->std.n);
    loader.has_mean_std = o->mean.n > 0;
    for (int c = 0; c < 4; c++) {
        loader.mean[c] = o->mean.value[o->mean.n == 1 ? 0 : c];
        loader.std[c] = o->std.value[o->std.n == 1 ? 0 : c];
    }
    *out = loader;
    return CVY_OK;
}

struct cvy_lr_schedule options_schedule(const struct options *o) {
    return (struct cvy_lr_schedule){.kind = o->lr_scheduler,
                                    .lr = o->lr,
                                    .min_lr = o->lr_min,
                                    .step_size = o->lr_step_size,
                                    .gamma = o->lr_gamma,
                                    .warmup_epochs = o->lr_warmup_epochs,
                                    .warmup_decay = o->lr_warmup_decay,
                                    .warmup_method = o->lr_warmup_method,
                                    .n_epochs = o->epochs,
                                    .updates_per_epoch = 1};
}

cvy_status options_scale_lr(struct flag_values *values) {
    struct options *o = values->options;
    bool is_lr_given = flags_given(values, "lr");
    if (is_lr_given && flags_given(values, "lr-base"))
        return CVY_FAIL(CVY_ERR_USAGE, "--lr and --lr-base: give one of them");
    if (isnan(o->lr_base) || is_lr_given)
        return CVY_OK;
    double ratio = (double)(o->batch_size * o->accumulate) / (double)o->lr_base_size;
    bool is_root = strcmp(o->lr_base_scale, "sqrt") == 0;
    o->lr = o->lr_base * (is_root ? sqrt(ratio) : ratio);
    if (cvy_world_rank(o->world) == 0)
        printf("learning rate %g = %g x %s%lld/%lld%s\n", o->lr, o->lr_base, is_root ? "sqrt(" : "",
               (long long)(o->batch_size * o->accumulate), (long long)o->lr_base_size, is_root ? ")" : "");
    return CVY_OK;
}

/* ---- the optimiser's attributes ------------------------------------------------------------------------ */

static bool has_attribute(const struct cvy_op *op, const char *name) {
    for (int i = 0; i < op->n_attrs; i++)
        if (!strcmp(op->attrs[i].name, name))
            return true;
    return false;
}

/* How often "NAME=…" stands in a list of attributes; 0 without a list. */
static int count_attribute(const char *list, const char *name) {
    size_t n_name = strlen(name);
    int count = 0;
    for (const char *at = list ? list : ""; *at; at += strcspn(at, " \t")) {
        at += strspn(at, " \t");
        count += strncmp(at, name, n_name) == 0 && at[n_name] == '=';
    }
    return count;
}

/* Adds "NAME=VALUE": the flag's when it was given, else the common default where the optimiser has the
   attribute (NAN: the optimiser's own). */
static cvy_status add_attribute(const struct cvy_op *op, const char *flag, const char *name, double value,
                                double common, struct cvy_text *out) {
    if (!isnan(value) && !has_attribute(op, name))
        return CVY_FAIL(CVY_ERR_USAGE, "--%s: the optimiser %s has no such attribute", flag, op->name);
    double chosen = isnan(value) ? common : value;
    if (!isnan(chosen) && has_attribute(op, name))
        cvy_text_printf(out, "%s%s=%.17g", out->n ? " " : "", name, chosen);
    return CVY_OK;
}

/* NAN where --opt-args says it. */
static double default_of(const struct options *o, const char *name, double common) {
    return count_attribute(o->opt_args, name) ? NAN : common;
}

/* The weight decay of a group of parameters, for the plan to take apart again. */
static cvy_status add_decay(const struct cvy_op *op, const char *flag, const char *name, double value,
                            struct cvy_text *out) {
    if (!isnan(value) && !has_attribute(op, "weight_decay"))
        return CVY_FAIL(CVY_ERR_USAGE, "--%s: the optimiser %s has no weight decay", flag, op->name);
    if (!isnan(value))
        cvy_text_printf(out, "%s%s=%.17g", out->n ? " " : "", name, value);
    return CVY_OK;
}

static cvy_status add_attributes(const struct options *o, const struct cvy_op *op, struct cvy_text *out) {
    CVY_TRY(add_attribute(op, "momentum", "momentum", o->momentum, default_of(o, "momentum", 0.9), out));
    CVY_TRY(add_attribute(op, "weight-decay", "weight_decay", o->weight_decay,
                          default_of(o, "weight_decay", 1e-4), out));
    CVY_TRY(add_decay(op, "norm-weight-decay", "norm_weight_decay", o->norm_weight_decay, out));
    CVY_TRY(add_decay(op, "bias-weight-decay", "bias_weight_decay", o->bias_weight_decay, out));
    CVY_TRY(add_attribute(op, "dampening", "dampening", o->dampening, NAN, out));
    if (o->nesterov >= 0) {
        if (!has_attribute(op, "nesterov"))
            return CVY_FAIL(CVY_ERR_USAGE, "--nesterov: the optimiser %s has no such attribute", op->name);
        cvy_text_printf(out, "%snesterov=%s", out->n ? " " : "", o->nesterov ? "true" : "false");
    }
    if (o->opt_args)
        cvy_text_printf(out, "%s%s", out->n ? " " : "", o->opt_args);
    return CVY_OK;
}

static cvy_status check_once(const struct cvy_op *op, const char *list) {
    for (int i = 0; i < op->n_attrs; i++)
        if (count_attribute(list, op->attrs[i].name) > 1)
            return CVY_FAIL(CVY_ERR_USAGE, "--opt-args: %s is given twice", op->attrs[i].name);
    return CVY_OK;
}

cvy_status options_optimizer(struct flag_values *values, const char **attributes) {
    const struct options *o = options_of(values);
    const struct cvy_op *op = cvy_op_find(o->opt);
    struct cvy_text text = {0};
    char *kept;
    cvy_status status = add_attributes(o, op, &text);
    if (status == CVY_OK)
        status = check_once(op, text.data);
    if (status == CVY_OK)
        status = cvy_pool_strdup(&values->pool, text.data ? text.data : "", &kept);
    cvy_text_free(&text);
    CVY_TRY(status);
    *attributes = kept;
    return CVY_OK;
}

void options_optimizer_help(struct cvy_text *out) {
    size_t n;
    const struct cvy_op *const *table = cvy_op_table(&n);
    cvy_text_printf(out, "\nOptimisers and their attributes (--opt-args):\n");
    for (size_t i = 0; i < n; i++) {
        if (!(table[i]->flags & CVY_OP_OPTIMIZER))
            continue;
        cvy_text_printf(out, "  %s: %s\n", table[i]->name, table[i]->help);
        for (int k = 0; k < table[i]->n_attrs; k++)
            cvy_text_printf(out, "      %-14s %s [%g]\n", table[i]->attrs[k].name, table[i]->attrs[k].help,
                            table[i]->attrs[k].initial);
    }
    const struct cvy_lr_schedule_kind *kinds = cvy_lr_schedule_table(&n);
    cvy_text_printf(out, "\nSchedules of the learning rate (--lr-scheduler):\n");
    for (size_t i = 0; i < n; i++)
        cvy_text_printf(out, "  %-10s %s\n", kinds[i].name, kinds[i].help);
}

/* ---- plan and task --------------------------------------------------------------------------------------- */

void options_plan(const struct options *o, cvy_plan_options *out) {
    *out = (cvy_plan_options){.devices = o->devices,
                              .is_elastic = o->elastic,
                              .strategy = o->strategy,
                              .mesh = o->mesh,
                              .schedule = o->schedule,
                              .backend = o->backend,
                              .batch_size = o->batch_size,
                              .shards = o->shards,
                              .sync_bn = o->sync_bn == 1,
                              .recompute = o->recompute == 1,
                              .threads_per_device = (int)o->threads,
                              .conv_algo = o->conv_algo,
                              .amp = o->amp && strcmp(o->amp, "none") ? o->amp : NULL,
                              .nondeterministic = o->nondeterministic == 1,
                              .fast_reduce = o->fast_reduce == 1,
                              .clip_grad_norm = o->clip_grad_norm,
                              .freeze = o->freeze,
                              .on_nan = o->on_nan,
                              .tf32 = o->tf32 == 1,
                              .no_graphs = o->graphs == 0,
                              .device_memory = o->device_memory,
                              .bucket_mb = o->bucket_mb,
                              .first_bucket_mb = o->first_bucket_mb,
                              .seed = (uint64_t)o->seed,
                              .timeout_s = o->timeout_s,
                              .world = o->world};
}

/* --data-path DIR is --data folder:DIR. */
static cvy_status settle_data(struct flag_values *values) {
    struct options *o = values->options;
    bool is_spec_given = flags_given(values, "data");
    if (is_spec_given && flags_given(values, "data-path"))
        return CVY_FAIL(CVY_ERR_USAGE, "--data-path and --data: give one of them");
    if (!o->data_path || is_spec_given)
        return CVY_OK;
    char *spec;
    CVY_TRY(cvy_pool_printf(&values->pool, &spec, "folder:%s", o->data_path));
    o->data = spec;
    o->data_path = NULL;
    return CVY_OK;
}

cvy_status options_task(struct flag_values *values, enum cvy_task_kind kind, const cvy_log_sink *log,
                        struct cvy_task_options *out) {
    CVY_TRY(settle_data(values));
    const struct options *o = options_of(values);
    struct cvy_task_options task = {.kind = kind,
                                    .model = o->model,
                                    .num_classes = o->num_classes,
                                    .input = {o->input[0], o->input[1], o->input[2]},
                                    .label_smoothing = o->label_smoothing,
                                    .mixup_alpha = o->mixup_alpha,
                                    .cutmix_alpha = o->cutmix_alpha,
                                    .data = o->data};
    CVY_TRY(options_loader(o, &task.loader));
    task.as_stored = o->exif == 0 ? 1 : o->exif == 1 ? -1 : 0;
    task.n_times = o->ra_reps;
    task.skips_bad = o->on_bad_image && strcmp(o->on_bad_image, "skip") == 0;
    task.n_mean_std = o->mean.n > 1 ? o->mean.n : 0;
    options_plan(o, &task.plan);
    task.plan.log = *log;
    if (kind == CVY_TASK_TRAIN) {
        task.plan.optimizer = o->opt;
        CVY_TRY(options_optimizer(values, &task.plan.optimizer_attributes));
        if (o->progressive_resize)
            CVY_TRY(cvy_progressive_parse(o->progressive_resize, o->epochs, &task.progressive));
    }
    *out = task;
    return CVY_OK;
}
