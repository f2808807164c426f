/* convoy train: trains a network, shows how it goes, writes run.json around it. */
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/past_run.h"
#include "cli/printer.h"
#include "cli/report.h"
#include "cli/restarts.h"
#include "cli/run_file.h"
#include "cli/tuning.h"

#include "base/thread.h"
#include "data/loader.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Mesh and schedule of a configuration belong to its strategy: when the command line gives another one, they do not
   count. */
static void drop_of_other_strategy(struct flag_values *values) {
    struct options *o = values->options;
    if (!flags_given(values, "strategy"))
        return;
    if (!flags_given(values, "mesh"))
        o->mesh = NULL;
    if (!flags_given(values, "schedule"))
        o->schedule = NULL;
}

static cvy_status make_options(struct flag_values *values, const cvy_log_sink *log,
                               struct cvy_trainer_options *out) {
    const struct options *o = values->options;
    *out = (struct cvy_trainer_options){
        .schedule = options_schedule(o),
        .weights = o->weights,
        .replace_head = o->replace_head == 1,
        .resume = o->resume,
        .output_dir = o->output_dir,
        .overwrite = o->overwrite == 1,
        .profile = o->profile == 1,
        .checkpoint_every = o->checkpoint_every,
        .log_every = o->print_freq,
        .early_stop = o->early_stop,
        .check_sync = o->check_sync,
        .ema = {.steps = o->model_ema == 1 ? o->model_ema_steps : 0, .decay = o->model_ema_decay},
        .is_shards_fixed = o->shards > 0,
        .is_threads_fixed = o->threads > 0};
    return options_task(values, CVY_TASK_TRAIN, log, &out->task);
}

static void print_ready(const struct cvy_trainer *t, int64_t start_ns) {
    struct cvy_plan_facts facts;
    cvy_plan_facts(t->task.plan, &facts);
    printf("ready in %.2f s, of which %.2f s for the first touch of %.0f MB a device\n",
           (double)(cvy_now_ns() - start_ns) * 1e-9, cvy_session_touch_s(t->task.session),
           (double)facts.arena_bytes / 1e6);
    if (t->state.epoch >= t->options.schedule.n_epochs)
        printf("%lld epochs are done already, --epochs asks for %lld: nothing is left to train\n",
               (long long)t->state.epoch, (long long)t->options.schedule.n_epochs);
    else if (t->state.step == t->n_steps)
        printf("going on with the evaluation of epoch %lld\n", (long long)t->state.epoch + 1);
    else if (t->state.epoch > 0 || t->state.step > 0)
        printf("going on at epoch %lld, step %lld\n", (long long)t->state.epoch + 1,
               (long long)t->state.step + 1);
    fflush(stdout);
}

/* A run that was finished already stays as it was written. */
static cvy_status finish(struct flag_values *values, struct cvy_trainer *t, bool is_written) {
    struct run_result result = {.images_per_s = cvy_progress_rate(&t->progress)};
    struct cvy_plan_facts facts;
    cvy_plan_facts(t->task.plan, &facts);
    CVY_TRY(cvy_weights_hash(t->task.session, &result.weights_hash));
    /* run.json says last that the run is finished: one that is killed before then writes its report again */
    if (!is_written &&
        report_write(values, t, &result) != CVY_OK) /* the run is done and kept, all the same */
        cvy_log(&t->options.task.plan.log, CVY_LOG_WARNING, "there is no report.html: %s", cvy_error());
    if (!is_written)
        CVY_TRY(run_file_write(values, t, &result));
    printf("done: top-1 %.2f %% of %lld images, %.0f images/s, S=%lld T=%d, weights xxh3 %016llx\n",
           cvy_tally_top1(&t->val), (long long)t->val.n, result.images_per_s, (long long)facts.shards,
           facts.threads, (unsigned long long)result.weights_hash);
    return CVY_OK;
}

/* The context of the trainer's calls. */
struct view {
    struct printer printer;
    struct interrupt *interrupt;
};

static void show_step(void *context, const struct cvy_step_report *r, const struct cvy_progress *p) {
    struct view *view = context;
    printer_step(&view->printer, r, p);
}

static void show_epoch(void *context, const struct cvy_epoch_report *r, const struct cvy_progress *p) {
    const struct view *view = context;
    printer_epoch(&view->printer, r, p);
}

static bool is_interrupted(void *context) {
    const struct view *view = context;
    return view->interrupt->is_asked;
}

static void print_bad(void *context, const char *reason) {
    const char *who = context;
    fprintf(stderr, "%s  %s\n", who, reason);
}

/* Each process lists those that it met. */
static void print_skipped(const struct cvy_trainer *t, cvy_world *world) {
    struct cvy_bad_list *list = t->task.train_loader ? cvy_loader_bad(t->task.train_loader) : NULL;
    int64_t n = list ? cvy_bad_list_tell(list, NULL, NULL) : 0;
    char who[32] = "";
    if (n == 0)
        return;
    if (cvy_world_size(world) > 1)
        snprintf(who, sizeof who, "rank %d: ", cvy_world_rank(world));
    fprintf(stderr, "%sskipped: %lld image%s could not be read, others took %s place\n", who, (long long)n,
            n == 1 ? "" : "s", n == 1 ? "its" : "their");
    cvy_bad_list_tell(list, print_bad, who);
}

static cvy_status train(struct flag_values *values, struct cvy_trainer *t,
                        const struct cvy_trainer_options *options, const struct past_run *past) {
    const struct options *o = values->options;
    int64_t start_ns = cvy_now_ns();
    struct view view = {
        /* a launcher may give its processes a terminal and write what they say to a file */
        .printer = {.is_terminal = cvy_world_size(o->world) == 1 && printer_is_terminal(STDOUT_FILENO),
                    .print_freq = o->print_freq},
        .interrupt = o->interrupt};
    const struct cvy_trainer_events events = {
        .context = &view, .on_step = show_step, .on_epoch = show_epoch, .is_interrupted = is_interrupted};
    CVY_TRY(cvy_trainer_open(t, options, &events));
    printer_devices(t->task.plan);
    print_ready(t, start_ns);
    const bool is_written = past->is_finished && t->resume.folder && t->state.epoch >= o->epochs;
    if (!is_written && t->resume.folder && past->changes.n)
        cvy_log(&t->options.task.plan.log, CVY_LOG_WARNING, "this run goes on otherwise than it began: %s",
                past->changes.data);
    if (!is_written)
        CVY_TRY(run_file_write(values, t, NULL));
    cvy_status status = cvy_trainer_run(t);
    if (status != CVY_OK && view.printer.is_terminal)
        printf("\n"); /* the bar stays as it was */
    fflush(stdout);
    print_skipped(t, o->world);
    CVY_TRY(status);
    return finish(values, t, is_written);
}

static cvy_status check_form(const struct flag_values *values) {
    const struct options *o = values->options;
    CVY_TRY(command_no_rest(values));
    if (!o->data || !o->output_dir)
        return CVY_OK;
    cvy_status status = cvy_dataset_check_output(o->data, o->output_dir);
    return status == CVY_OK ? status : cvy_fail_prefix(status, "--output-dir ");
}

static cvy_status run_after(struct flag_values *values, const struct past_run *past,
                            const cvy_log_sink *log) {
    const struct options *o = values->options;
    if (o->replace_head == 1 && !o->weights)
        return CVY_FAIL(CVY_ERR_USAGE, "--replace-head: give the --weights that the rest comes from");
    if (o->profile == 1 && !o->output_dir)
        return CVY_FAIL(CVY_ERR_USAGE, "--profile: give the --output-dir that its files go to");
    if (o->checkpoint_every > 0 && !o->output_dir)
        cvy_log(log, CVY_LOG_WARNING, "--checkpoint-every: nothing is saved without --output-dir");
    drop_of_other_strategy(values);
    if (o->test_only && o->batch_size == 0)
        return CVY_FAIL(CVY_ERR_USAGE, "--batch-size auto: is for training; give a number with --test-only");
    if (o->test_only)
        return eval_run(values, log);
    if (o->batch_size == 0) { /* all processes look for it, or none */
        CVY_TRY(command_agree(values, check_form(values)));
        CVY_TRY(options_fit_batch(values, log));
    }
    struct cvy_trainer trainer = {.n_steps = 0};
    struct cvy_trainer_options options;
    cvy_status status = check_form(values);
    if (status == CVY_OK)
        status = options_scale_lr(values);
    if (status == CVY_OK)
        status = make_options(values, log, &options);
    CVY_TRY(command_agree(values, status));
    o->interrupt->is_soft = true;
    status = train(values, &trainer, &options, past);
    cvy_trainer_close(&trainer);
    o->interrupt->is_soft = false;
    return status;
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    struct past_run past = {.is_finished = false};
    cvy_status status = past_run_read(values, &past);
    if (status == CVY_OK)
        status = run_after(values, &past, log);
    past_run_free(&past);
    return status;
}

static const struct flag_group *const groups[] = {&group_shape,         &group_weights,
                                                  &group_finetune,      &group_freeze,
                                                  &group_data,          &group_prepare,
                                                  &group_augment,       &group_bad,
                                                  &group_fitting_batch, &group_devices,
                                                  &group_kernels,       &group_step,
                                                  &group_optimizer,     &group_schedule,
                                                  &group_ema,           &group_run,
                                                  &group_restarts,      &group_guards,
                                                  &group_seed,          &group_tuning,
                                                  &group_common,        NULL};

const struct command command_train = {
    .name = "train",
    .usage = "--model NAME --data SPEC [flags]",
    .help = "train a network and judge it after every epoch",
    .groups = groups,
    .more_help = options_optimizer_help,
    .is_collective = true,
    .run = run,
};
