/* See trainer.h. */
#include "engine/trainer.h"

#include "base/thread.h"
#include "data/data.h"
#include "engine/evaluation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LL(x) ((long long)(x))

static double seconds_since(int64_t start_ns) { return (double)(cvy_now_ns() - start_ns) * 1e-9; }

/* ---- opening -------------------------------------------------------------------------------------------- */

cvy_status cvy_task_load_weights(struct cvy_task *task, const char *path) {
    char *file;
    struct cvy_card card;
    CVY_TRY(cvy_weights_find(path, &file));
    cvy_status status = cvy_card_read(file, &card);
    if (status == CVY_OK) {
        status = cvy_card_check(&card, task, file);
        if (status == CVY_OK)
            status = cvy_load_weights(task->session, file);
        cvy_card_free(&card);
    }
    free(file);
    return status;
}

/* What fixes the bits comes from the checkpoint, never from the devices at hand. */
static cvy_status adopt_bits(struct cvy_trainer *t) {
    const struct cvy_trainer_options *o = &t->options;
    const struct cvy_card *card = &t->resume_card;
    cvy_plan_options *plan = &t->options.task.plan;
    if (!card->model)
        return CVY_FAIL(CVY_ERR_DATA,
                        "%s/model.safetensors says nothing about itself: it cannot be resumed, only "
                        "be the --weights of a new run",
                        t->resume_folder);
    if (o->is_shards_fixed && plan->shards != card->shards)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--shards %lld: the checkpoint %s was trained with S=%lld; leave the flag out",
                        LL(plan->shards), t->resume_folder, LL(card->shards));
    if (o->is_threads_fixed && plan->threads_per_device != card->threads)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "--threads-per-device %d: the checkpoint %s was trained with T=%lld; leave the flag out",
            plan->threads_per_device, t->resume_folder, LL(card->threads));
    plan->shards = card->shards;
    plan->threads_per_device = (int)card->threads;
    plan->conv_algo = card->conv_algo;
    return CVY_OK;
}

static cvy_status read_resume(struct cvy_trainer *t) {
    CVY_TRY(cvy_checkpoint_find(t->options.resume, "last", "state.json", &t->resume_folder));
    CVY_TRY(cvy_checkpoint_state(t->resume_folder, &t->state));
    char *weights;
    CVY_TRY(cvy_weights_find(t->resume_folder, &weights));
    cvy_status status = cvy_card_read(weights, &t->resume_card);
    free(weights);
    CVY_TRY(status);
    return adopt_bits(t);
}

static cvy_status check_resume(const struct cvy_trainer *t) {
    const struct cvy_train_state *s = &t->state;
    const struct cvy_task_options *o = &t->options.task;
    CVY_TRY(cvy_card_check(&t->resume_card, &t->task, t->resume_folder));
    if (strcmp(s->optimizer, o->plan.optimizer) != 0)
        return CVY_FAIL(CVY_ERR_USAGE, "--opt %s: the checkpoint %s was trained with %s", o->plan.optimizer,
                        t->resume_folder, s->optimizer);
    bool is_other_order = s->batch_size != o->loader.batch_size || s->seed != o->loader.seed;
    if (s->step > 0 && is_other_order)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "the checkpoint %s stands in the middle of an epoch: go on with --batch-size %lld --seed %llu",
            t->resume_folder, LL(s->batch_size), (unsigned long long)s->seed);
    if (s->step >= t->n_steps)
        return CVY_FAIL(CVY_ERR_DATA, "the checkpoint %s stands at step %lld of an epoch that has %lld here",
                        t->resume_folder, LL(s->step), LL(t->n_steps));
    return CVY_OK;
}

static cvy_status open_output(struct cvy_trainer *t) {
    const char *dir = t->options.output_dir;
    if (!dir)
        return CVY_OK;
    CVY_TRY(cvy_make_folder(dir));
    struct cvy_text path = {0};
    cvy_text_printf(&path, "%s/metrics.jsonl", dir);
    char *text;
    CVY_TRY(cvy_text_take(&path, &text));
    cvy_status status = cvy_metrics_open(text, &t->metrics);
    free(text);
    return status;
}

/* The session's weights, and the state of a training that begins or goes on. */
static cvy_status start(struct cvy_trainer *t) {
    const struct cvy_trainer_options *o = &t->options;
    if (t->resume_folder)
        CVY_TRY(check_resume(t));
    CVY_TRY(cvy_task_start(&t->task));
    if (t->resume_folder) {
        CVY_TRY(cvy_checkpoint_load(t->resume_folder, t->task.session, &t->state));
    } else {
        t->state = (struct cvy_train_state){.best_epoch = -1};
        snprintf(t->state.optimizer, sizeof t->state.optimizer, "%s", o->task.plan.optimizer);
        if (o->weights)
            CVY_TRY(cvy_task_load_weights(&t->task, o->weights));
    }
    t->state.batch_size = o->task.loader.batch_size;
    t->state.seed = o->task.loader.seed;
    int64_t n = t->task.train->n;
    t->progress.n_total = o->schedule.n_epochs * n;
    t->progress.n_done = t->state.epoch * n + t->state.train.n;
    return CVY_OK;
}

cvy_status cvy_trainer_open(struct cvy_trainer *t, const struct cvy_trainer_options *options,
                            const struct cvy_trainer_events *events) {
    t->options = *options;
    t->events = *events;
    t->options.schedule.updates_per_epoch = 1; /* until the data are known */
    CVY_TRY(cvy_lr_check(&t->options.schedule));
    if (options->output_dir) {
        cvy_checkpoint_tidy(options->output_dir, "last");
        cvy_checkpoint_tidy(options->output_dir, "best");
    }
    if (options->resume)
        CVY_TRY(read_resume(t));
    CVY_TRY(cvy_task_open(&t->task, &t->options.task, NULL));
    t->n_steps = (t->task.train->n + options->task.loader.batch_size - 1) / options->task.loader.batch_size;
    t->options.schedule.updates_per_epoch = t->n_steps;
    CVY_TRY(open_output(t));
    CVY_TRY(start(t));
    return cvy_card_make(&t->task, &t->card);
}

void cvy_trainer_close(struct cvy_trainer *t) {
    cvy_metrics_close(t->metrics);
    cvy_card_free(&t->card);
    cvy_task_free(&t->task);
    cvy_card_free(&t->resume_card);
    free(t->resume_folder);
    *t = (struct cvy_trainer){0};
}

/* ---- the loop ------------------------------------------------------------------------------------------- */

static cvy_status checkpoint(struct cvy_trainer *t, const char *name) {
    const char *dir = t->options.output_dir;
    return dir ? cvy_checkpoint_save(dir, name, t->task.session, &t->card, &t->state) : CVY_OK;
}

static cvy_status report_step(struct cvy_trainer *t, double lr, const cvy_metrics *metrics, double seconds) {
    struct cvy_train_state *s = &t->state;
    struct cvy_step_report report = {.epoch = s->epoch,
                                     .n_epochs = t->options.schedule.n_epochs,
                                     .step = s->step,
                                     .n_steps = t->n_steps,
                                     .lr = lr,
                                     .metrics = *metrics,
                                     .images_per_s = seconds > 0 ? (double)metrics->n / seconds : 0};
    if (t->events.on_step)
        t->events.on_step(t->events.context, &report, &t->progress);
    bool is_due = s->step % t->options.log_every == 0 || s->step == t->n_steps - 1;
    return t->metrics && is_due ? cvy_metrics_step(t->metrics, &report) : CVY_OK;
}

static cvy_status interrupt(struct cvy_trainer *t) {
    CVY_TRY(checkpoint(t, "last"));
    const char *dir = t->options.output_dir;
    return CVY_FAIL(CVY_INTERRUPTED, "interrupted in epoch %lld after step %lld of %lld; %s%s",
                    LL(t->state.epoch + 1), LL(t->state.step), LL(t->n_steps),
                    dir ? "go on with --resume "
                        : "nothing was saved, for want of "
                          "--output-dir",
                    dir ? dir : "");
}

/* Counts one more step; the counts are whole before anything can stop the run. */
static cvy_status train_step(struct cvy_trainer *t, const cvy_batch *batch, int64_t start_ns) {
    struct cvy_train_state *s = &t->state;
    double lr = cvy_lr_at(&t->options.schedule, s->epoch * t->n_steps + s->step);
    cvy_session_set_lr(t->task.session, lr);
    CVY_TRY(cvy_step(t->task.session, batch));
    t->is_evaluated = false;
    cvy_metrics m;
    cvy_session_metrics(t->task.session, &m);
    double seconds = seconds_since(start_ns);
    cvy_progress_add(&t->progress, m.n, seconds);
    CVY_TRY(report_step(t, lr, &m, seconds));
    s->train.n += m.n;
    s->train.top1 += m.top1;
    s->train.top5 += m.top5;
    s->train.loss_sum += m.loss * (double)m.n;
    s->train_s += seconds;
    s->step++;
    s->n_updates++;
    if (s->step < t->n_steps && t->events.is_interrupted && t->events.is_interrupted(t->events.context))
        return interrupt(t);
    return CVY_OK;
}

static cvy_status train_epoch(struct cvy_trainer *t) {
    cvy_batch batch;
    CVY_TRY(cvy_loader_start(t->task.train_loader, t->state.epoch));
    int64_t n_skipped = t->state.step; /* done before the interruption that we go on from */
    for (;;) {
        int64_t start_ns = cvy_now_ns();
        cvy_status status = cvy_loader_next(t->task.train_loader, &batch);
        if (status == CVY_END)
            return CVY_OK;
        CVY_TRY(status);
        if (n_skipped > 0)
            n_skipped--;
        else
            CVY_TRY(train_step(t, &batch, start_ns));
    }
}

static cvy_status evaluate(struct cvy_trainer *t) {
    CVY_TRY(
        cvy_evaluate_all(t->task.session, t->task.val_loader, t->task.options.loader.batch_size, &t->val));
    t->is_evaluated = true;
    return CVY_OK;
}

/* Evaluates, moves the state to the next epoch, writes what there is to write. */
static cvy_status end_epoch(struct cvy_trainer *t) {
    struct cvy_train_state *s = &t->state;
    int64_t start_ns = cvy_now_ns();
    CVY_TRY(evaluate(t));
    struct cvy_epoch_report report = {.epoch = s->epoch,
                                      .n_epochs = t->options.schedule.n_epochs,
                                      .lr = cvy_lr_at(&t->options.schedule, (s->epoch + 1) * t->n_steps - 1),
                                      .train = s->train,
                                      .val = t->val,
                                      .train_s = s->train_s,
                                      .val_s = seconds_since(start_ns),
                                      .is_best = s->best_epoch < 0 || t->val.top1 > s->best_top1};
    if (report.is_best) {
        s->best_epoch = s->epoch;
        s->best_top1 = t->val.top1;
    }
    s->epoch++;
    s->step = 0;
    s->train = (struct cvy_tally){0};
    s->train_s = 0;
    CVY_TRY(checkpoint(t, "last"));
    if (report.is_best)
        CVY_TRY(checkpoint(t, "best"));
    if (t->metrics)
        CVY_TRY(cvy_metrics_epoch(t->metrics, &report));
    if (t->events.on_epoch)
        t->events.on_epoch(t->events.context, &report, &t->progress);
    return CVY_OK;
}

cvy_status cvy_trainer_run(struct cvy_trainer *t) {
    while (t->state.epoch < t->options.schedule.n_epochs) {
        CVY_TRY(train_epoch(t));
        CVY_TRY(end_epoch(t));
        bool is_last = t->state.epoch == t->options.schedule.n_epochs;
        if (!is_last && t->events.is_interrupted && t->events.is_interrupted(t->events.context))
            return interrupt(t);
    }
    return t->is_evaluated ? CVY_OK : evaluate(t); /* not yet when a finished run is resumed */
}
