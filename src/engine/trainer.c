/* See trainer.h. */
#include "engine/trainer.h"

#include "base/text.h"
#include "base/thread.h"
#include "data/data.h"
#include "data/loader.h"
#include "engine/evaluation.h"
#include "engine/guards.h"
#include "engine/saving.h"
#include "engine/session.h"
#include "engine/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LL(x) ((long long)(x))

static double seconds_since(int64_t start_ns) { return (double)(cvy_now_ns() - start_ns) * 1e-9; }

/* ---- opening -------------------------------------------------------------------------------------------- */

/* Rank 0 writes for all processes. */
static bool is_writer(const struct cvy_trainer *t) { return cvy_world_rank(t->options.task.plan.world) == 0; }

/* The folder is looked at before anything else when it is there, but only made once data and plan are good. */
static cvy_status open_folder(struct cvy_trainer *t) {
    const struct cvy_trainer_options *o = &t->options;
    if (!is_writer(t))
        return CVY_OK;
    const struct cvy_run_folder_options options = {
        .dir = o->output_dir, .resume = o->resume, .overwrite = o->overwrite, .log = &o->task.plan.log};
    return cvy_run_folder_open(&t->folder, &options);
}

/* Nobody reads a checkpoint before rank 0 has cleared up. */
static cvy_status tidy_folder(struct cvy_trainer *t) {
    const char *dir = t->options.output_dir;
    cvy_status status = access(dir, F_OK) == 0 ? open_folder(t) : CVY_OK;
    return cvy_world_share_failure(t->options.task.plan.world, status, "the output folder");
}

/* After everything that can still refuse the run: a run that is overwritten loses its metrics here. */
static cvy_status open_metrics(struct cvy_trainer *t) {
    const char *dir = t->options.output_dir;
    bool is_new = t->folder.has_old_run;
    struct cvy_text lines = {0}, events = {0};
    if (!dir || !is_writer(t))
        return CVY_OK;
    cvy_text_printf(&lines, "%s/metrics.jsonl", dir);
    cvy_text_printf(&events, "%s/events.out.tfevents.convoy", dir);
    cvy_status status = lines.status != CVY_OK ? lines.status : events.status;
    if (status == CVY_OK)
        status = cvy_metrics_open(lines.data, is_new, &t->metrics);
    if (status == CVY_OK)
        status = cvy_metrics_cut(t->metrics, t->state.epoch, t->state.step);
    if (status == CVY_OK)
        status = cvy_event_file_open(events.data, is_new, t->state.n_updates, &t->event_file);
    cvy_text_free(&lines);
    cvy_text_free(&events);
    return status;
}

/* The average begins with the weights that there are. */
static cvy_status open_ema(struct cvy_trainer *t) {
    const struct cvy_ema_options *o = &t->options.ema;
    const cvy_loader_options *loader = &t->options.task.loader;
    int64_t accumulate = loader->accumulate ? loader->accumulate : 1;
    if (o->steps == 0)
        return CVY_OK;
    double decay = cvy_ema_decay(o, loader->batch_size * accumulate, t->options.schedule.n_epochs);
    return cvy_ema_open(&t->ema, t->task.session, o->steps, decay);
}

/* Training images get the epoch's size. */
static cvy_status resize(struct cvy_trainer *t) {
    const struct cvy_progressive *p = &t->options.task.progressive;
    const int64_t side = cvy_progressive_side(p, t->state.epoch), was = t->task.side;
    if (p->last == 0)
        return CVY_OK;
    cvy_status status = cvy_task_resize(&t->task, side);
    if (status != CVY_OK)
        return cvy_fail_prefix(status, "training images of %lldx%lld: ", LL(side), LL(side));
    if (t->task.side != was && is_writer(t))
        cvy_log(&t->options.task.plan.log, CVY_LOG_INFO, "epoch %lld: training images of %lldx%lld",
                LL(t->state.epoch + 1), LL(side), LL(side));
    return CVY_OK;
}

/* The session's weights, and the state of a training that begins or goes on. */
static cvy_status start(struct cvy_trainer *t) {
    const struct cvy_trainer_options *o = &t->options;
    if (t->resume.folder)
        CVY_TRY(cvy_resume_check(&t->resume, &t->task, t->n_steps));
    CVY_TRY(cvy_task_start(&t->task));
    if (t->resume.folder) {
        t->state = t->resume.state;
        CVY_TRY(open_ema(t));
        CVY_TRY(cvy_checkpoint_load(t->resume.folder, t->task.session, &t->state, &t->ema));
    } else {
        t->state = (struct cvy_train_state){.best_epoch = -1};
        if (o->weights)
            CVY_TRY((o->replace_head ? cvy_task_load_body : cvy_task_load_weights)(&t->task, o->weights));
        CVY_TRY(open_ema(t));
    }
    CVY_TRY(resize(t)); /* a model of one size only is refused here */
    CVY_TRY(cvy_resume_describe(&t->task, &t->state));
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
    if (options->output_dir)
        CVY_TRY(tidy_folder(t));
    if (options->resume)
        CVY_TRY(cvy_resume_open(options->resume, options->output_dir, options->task.plan.world,
                                &options->task.plan.log, &t->resume));
    if (t->resume.folder)
        CVY_TRY(cvy_resume_adopt(&t->resume, options->is_shards_fixed, options->is_threads_fixed,
                                 &t->options.task.plan));
    else if (options->resume && is_writer(t))
        t->folder.has_old_run = true; /* nothing of it can be gone on with */
    CVY_TRY(cvy_task_open(&t->task, &t->options.task, NULL));
    const cvy_loader_options *loader = &options->task.loader;
    int64_t n_batches = (t->task.train->n + loader->batch_size - 1) / loader->batch_size;
    int64_t accumulate = loader->accumulate ? loader->accumulate : 1;
    t->n_steps = (n_batches + accumulate - 1) / accumulate;
    t->options.schedule.updates_per_epoch = t->n_steps;
    if (options->output_dir)
        CVY_TRY(open_folder(t));
    CVY_TRY(start(t));
    if (options->output_dir)
        CVY_TRY(cvy_mistakes_open(&t->mistakes, t->task.options.num_classes, loader->batch_size));
    CVY_TRY(cvy_card_make(&t->task, &t->card));
    return open_metrics(t);
}

void cvy_trainer_close(struct cvy_trainer *t) {
    cvy_metrics_close(t->metrics);
    cvy_event_file_close(t->event_file);
    cvy_checkpoint_writer_close(&t->writer);
    cvy_card_free(&t->card);
    cvy_ema_free(&t->ema);
    cvy_mistakes_free(&t->mistakes);
    cvy_step_trace_free(&t->step_trace);
    cvy_profile_close(&t->profile);
    cvy_task_free(&t->task);
    cvy_resume_free(&t->resume);
    cvy_run_folder_close(&t->folder);
    *t = (struct cvy_trainer){0};
}

/* ---- the loop ------------------------------------------------------------------------------------------- */

static cvy_status report_step(struct cvy_trainer *t, double lr, const cvy_metrics *metrics, double seconds) {
    struct cvy_train_state *s = &t->state;
    struct cvy_step_report report = {.epoch = s->epoch,
                                     .n_epochs = t->options.schedule.n_epochs,
                                     .step = s->step,
                                     .n_steps = t->n_steps,
                                     .lr = lr,
                                     .metrics = *metrics,
                                     .scale = t->task.session->scale,
                                     .is_clipped = t->options.task.plan.clip_grad_norm > 0,
                                     .images_per_s = seconds > 0 ? (double)metrics->n / seconds : 0};
    if (t->events.on_step)
        t->events.on_step(t->events.context, &report, &t->progress);
    bool is_due = s->step % t->options.log_every == 0 || s->step == t->n_steps - 1;
    if (!t->metrics || !is_due)
        return CVY_OK;
    CVY_TRY(cvy_metrics_step(t->metrics, &report));
    return cvy_event_file_step(t->event_file, &report);
}

/* Counts one more step; the counts are whole before anything can stop the run. */
static cvy_status end_step(struct cvy_trainer *t, double lr, double seconds) {
    struct cvy_train_state *s = &t->state;
    cvy_metrics m;
    cvy_session_metrics(t->task.session, &m);
    t->is_evaluated = false;
    t->is_saved = false;
    cvy_progress_add(&t->progress, m.n, seconds);
    CVY_TRY(report_step(t, lr, &m, seconds));
    s->scale = t->task.session->scale;
    bool is_warmup = (double)s->epoch < t->options.schedule.warmup_epochs;
    CVY_TRY(cvy_ema_step(&t->ema, s->step, is_warmup));
    s->n_averaged = t->ema.n_averaged;
    if (isfinite(m.loss)) { /* else --on-nan has left it out */
        s->train.n += m.n;
        s->train.top1 += m.top1;
        s->train.top5 += m.top5;
        s->train.loss_sum += m.loss * (double)m.n;
    }
    s->train_s += seconds;
    s->step++;
    s->n_updates++;
    CVY_TRY(cvy_guards_step(t));
    return s->step < t->n_steps ? cvy_trainer_between_steps(t) : CVY_OK;
}

enum { TRACE_AFTER = 5 }; /* steps: those before it may still find memory cold */

/* One step is recorded for the report: the sixth of this run, or the last of a shorter one. */
static cvy_status begin_trace(struct cvy_trainer *t, int64_t start_ns) {
    struct cvy_step_trace *s = &t->step_trace;
    const int64_t done = t->state.epoch * t->n_steps + t->state.step,
                  left = t->options.schedule.n_epochs * t->n_steps - done;
    if (!t->options.output_dir || s->is_open || s->end_ns > 0)
        return CVY_OK;
    if (s->n_seen++ < TRACE_AFTER && left > 1)
        return CVY_OK;
    s->epoch = t->state.epoch;
    s->step = t->state.step;
    s->start_ns = start_ns;
    s->loaded_ns = cvy_now_ns();
    return cvy_step_trace_begin(s, t->task.session);
}

/* A step is an update, of one batch or of several. */
static cvy_status train_epoch(struct cvy_trainer *t) {
    struct cvy_train_state *s = &t->state;
    cvy_batch batch;
    CVY_TRY(resize(t));
    cvy_guards_begin(t);
    CVY_TRY(cvy_loader_start_at(t->task.train_loader, s->epoch, s->step)); /* steps before an interruption */
    for (int64_t n_in = 0, start_ns = 0;;) {
        start_ns = n_in == 0 ? cvy_now_ns() : start_ns;
        if (n_in == 0)
            CVY_TRY(cvy_profile_begin(&t->profile, s->step));
        const int64_t load_ns = cvy_now_ns();
        cvy_status status = cvy_loader_next(t->task.train_loader, &batch);
        t->loaded_s += seconds_since(load_ns);
        if (status == CVY_END)
            return CVY_OK;
        CVY_TRY(status);
        CVY_TRY(cvy_profile_loaded(&t->profile));
        n_in += batch.n;
        bool is_last = n_in == batch.n_update;
        double lr = cvy_lr_at(&t->options.schedule, s->epoch * t->n_steps + s->step);
        cvy_session_set_lr(t->task.session, lr);
        CVY_TRY(begin_trace(t, start_ns));
        CVY_TRY(cvy_step(t->task.session, &batch));
        CVY_TRY(cvy_profile_stepped(&t->profile));
        if (is_last && t->step_trace.is_open)
            CVY_TRY(cvy_step_trace_end(&t->step_trace, t->task.session));
        if (is_last)
            CVY_TRY(end_step(t, lr, seconds_since(start_ns)));
        if (is_last)
            CVY_TRY(cvy_profile_end(&t->profile));
        n_in = is_last ? 0 : n_in;
    }
}

static cvy_status evaluate(struct cvy_trainer *t) {
    CVY_TRY(cvy_evaluate_all(t->task.session, t->task.val_loader, t->task.options.loader.batch_size,
                             t->mistakes.logits ? &t->mistakes : NULL, &t->val));
    t->is_evaluated = true;
    return CVY_OK;
}

static cvy_status evaluate_average(struct cvy_trainer *t, struct cvy_tally *out) {
    if (!t->ema.session)
        return CVY_OK;
    CVY_TRY(cvy_ema_swap(&t->ema));
    CVY_TRY(
        cvy_evaluate_all(t->task.session, t->task.val_loader, t->task.options.loader.batch_size, NULL, out));
    return cvy_ema_swap(&t->ema);
}

/* With the steps of the epoch saved first: an evaluation that fails, or is killed, does not cost what was trained. A
   resume finds all steps done and comes back here. */
static cvy_status evaluate_epoch(struct cvy_trainer *t, struct cvy_tally *average) {
    if (!t->is_saved)
        CVY_TRY(cvy_trainer_checkpoint(t, false));
    cvy_status status = evaluate(t);
    if (status == CVY_OK)
        status = evaluate_average(t, average);
    if (status != CVY_OK && t->options.output_dir && is_writer(t))
        cvy_log(&t->options.task.plan.log, CVY_LOG_INFO,
                "epoch %lld is trained and in %s/last: a resume goes on with its evaluation",
                LL(t->state.epoch + 1), t->options.output_dir);
    return status;
}

/* Evaluates, moves the state to the next epoch, writes what there is to write. */
static cvy_status end_epoch(struct cvy_trainer *t) {
    struct cvy_train_state *s = &t->state;
    struct cvy_tally average = {.n = 0};
    int64_t start_ns = cvy_now_ns();
    CVY_TRY(cvy_guards_epoch(t));
    CVY_TRY(evaluate_epoch(t, &average));
    struct cvy_epoch_report report = {.epoch = s->epoch,
                                      .n_epochs = t->options.schedule.n_epochs,
                                      .lr = cvy_lr_at(&t->options.schedule, (s->epoch + 1) * t->n_steps - 1),
                                      .train = s->train,
                                      .val = t->val,
                                      .ema = average,
                                      .train_s = s->train_s,
                                      .val_s = seconds_since(start_ns),
                                      .is_best = isfinite(t->val.loss_sum) &&
                                                 (s->best_epoch < 0 || t->val.top1 > s->best_top1)};
    if (report.is_best) {
        s->best_epoch = s->epoch;
        s->best_top1 = t->val.top1;
    }
    s->epoch++;
    s->step = 0;
    s->train = (struct cvy_tally){0};
    s->train_s = 0;
    /* Whoever is killed in between does this epoch's end again: a resume cuts the metrics back to its checkpoint. */
    if (t->metrics) {
        CVY_TRY(cvy_metrics_epoch(t->metrics, &report));
        CVY_TRY(cvy_event_file_epoch(t->event_file, &report, t->n_steps));
    }
    CVY_TRY(cvy_trainer_checkpoint(t, report.is_best));
    if (t->events.on_epoch)
        t->events.on_epoch(t->events.context, &report, &t->progress);
    return CVY_OK;
}

/* The newest epochs brought nothing: a run that is resumed then ends at once, too. */
static bool has_stalled(const struct cvy_trainer *t) {
    const struct cvy_train_state *s = &t->state;
    return t->options.early_stop > 0 && s->step == 0 && s->epoch - 1 - s->best_epoch >= t->options.early_stop;
}

static cvy_status open_profile(struct cvy_trainer *t) {
    const cvy_loader_options *loader = &t->options.task.loader;
    const int64_t n_update = loader->batch_size * (loader->accumulate ? loader->accumulate : 1);
    const int64_t done = t->state.epoch * t->n_steps + t->state.step;
    if (!t->options.profile || !t->options.output_dir)
        return CVY_OK;
    return cvy_profile_open(&t->profile, t->task.session, t->task.train->n / n_update,
                            t->options.schedule.n_epochs * t->n_steps - done);
}

/* The training counts, whether its profile can be written or not. A run that is resumed when nothing is left to train
   leaves the profile as it is. */
static cvy_status write_profile(struct cvy_trainer *t, cvy_status status) {
    struct cvy_error error;
    if (t->profile.n_seen == 0 || (status != CVY_OK && status != CVY_INTERRUPTED))
        return status;
    cvy_error_save(&error, status);
    cvy_status written = cvy_profile_save(&t->profile, &t->task, t->options.output_dir);
    if (written == CVY_ERR_LOST)
        return written;
    if (written != CVY_OK)
        cvy_log(&t->options.task.plan.log, CVY_LOG_WARNING, "there is no profile: %s", cvy_error());
    return cvy_error_restore(&error);
}

static cvy_status run_epochs(struct cvy_trainer *t) {
    while (t->state.epoch < t->options.schedule.n_epochs && !has_stalled(t)) {
        CVY_TRY(train_epoch(t));
        CVY_TRY(end_epoch(t));
        if (t->state.epoch < t->options.schedule.n_epochs)
            CVY_TRY(cvy_trainer_heed_interrupts(t));
    }
    CVY_TRY(cvy_trainer_settle(t));
    if (has_stalled(t) && is_writer(t))
        cvy_log(&t->options.task.plan.log, CVY_LOG_INFO,
                "stopped early, after epoch %lld: none has been better than epoch %lld", LL(t->state.epoch),
                LL(t->state.best_epoch + 1));
    return t->is_evaluated ? CVY_OK : evaluate(t); /* not yet when a finished run is resumed */
}

cvy_status cvy_trainer_run(struct cvy_trainer *t) {
    CVY_TRY(open_profile(t));
    return write_profile(t, run_epochs(t));
}
