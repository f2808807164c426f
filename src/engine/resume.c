/* See resume.h. */
#include "engine/resume.h"

#include "base/file.h"
#include "base/text.h"
#include "data/data.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LL(x) ((long long)(x))

cvy_status cvy_resume_read(const char *path, const cvy_log_sink *log, struct cvy_resume *out) {
    bool has_manifest;
    CVY_TRY(cvy_checkpoint_find(path, "last", "state.json", &out->folder));
    CVY_TRY(cvy_checkpoint_verify(out->folder, &has_manifest));
    if (!has_manifest)
        cvy_log(
            log, CVY_LOG_WARNING,
            "%s has no manifest.json: an earlier version of Convoy wrote it, and whether its files are whole "
            "cannot be told",
            out->folder);
    CVY_TRY(cvy_checkpoint_state(out->folder, &out->state));
    char *weights;
    CVY_TRY(cvy_path(out->folder, "model.safetensors", "", &weights));
    cvy_status status = cvy_card_read(weights, &out->card);
    free(weights);
    CVY_TRY(status);
    if (!out->card.model)
        return CVY_FAIL(CVY_ERR_DATA,
                        "%s/model.safetensors says nothing about itself: it cannot be resumed, only "
                        "be the --weights of a new run",
                        out->folder);
    return CVY_OK;
}

void cvy_resume_free(struct cvy_resume *resume) {
    cvy_card_free(&resume->card);
    free(resume->folder);
    *resume = (struct cvy_resume){0};
}

cvy_status cvy_resume_adopt(const struct cvy_resume *resume, bool is_shards_fixed, bool is_threads_fixed,
                            cvy_plan_options *plan) {
    const struct cvy_card *card = &resume->card;
    if (is_shards_fixed && plan->shards != card->shards)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--shards %lld: the checkpoint %s was trained with S=%lld; leave the flag out",
                        LL(plan->shards), resume->folder, LL(card->shards));
    if (is_threads_fixed && plan->threads_per_device != card->threads)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "--threads-per-device %d: the checkpoint %s was trained with T=%lld; leave the flag out",
            plan->threads_per_device, resume->folder, LL(card->threads));
    plan->shards = card->shards;
    plan->threads_per_device = (int)card->threads;
    plan->conv_algo = card->conv_algo;
    return CVY_OK;
}

/* What is only said when it is there: checkpoints are older than it. */
static void name_chances(const struct cvy_transform *t, const struct cvy_task_options *o, char *out,
                         size_t n_bytes) {
    const struct cvy_progressive *p = &o->progressive;
    const float *jitter = t->color_jitter;
    size_t n = 0;
    out[0] = '\0';
    if (jitter[0] > 0 || jitter[1] > 0 || jitter[2] > 0 || jitter[3] > 0)
        n += (size_t)snprintf(out, n_bytes, " jitter=%.7g,%.7g,%.7g,%.7g", (double)jitter[0],
                              (double)jitter[1], (double)jitter[2], (double)jitter[3]);
    if (t->auto_augment == CVY_AUTO_RA)
        n += (size_t)snprintf(out + n, n_bytes - n, " ra=%d", t->ra_magnitude);
    else if (t->auto_augment == CVY_AUTO_TA_WIDE)
        n += (size_t)snprintf(out + n, n_bytes - n, " ta_wide");
    if (t->random_erase > 0)
        n += (size_t)snprintf(out + n, n_bytes - n, " erase=%.7g", t->random_erase);
    if (o->n_times > 1)
        n += (size_t)snprintf(out + n, n_bytes - n, " repeated=%lld", LL(o->n_times));
    if (p->last > 0)
        snprintf(out + n, n_bytes - n, " sizes=%lld:%lld:%lld of %lld epochs", LL(p->first), LL(p->last),
                 LL(p->step), LL(p->n_epochs));
}

/* ---- what a run depends on ------------------------------------------------------------------------------ */

cvy_status cvy_resume_describe(const struct cvy_task *task, struct cvy_train_state *out) {
    struct cvy_transform t;
    cvy_loader_options options = task->options.loader;
    options.augment = true;
    CVY_TRY(cvy_transform_plan(task->train, &options, &t));
    out->batch_size = options.batch_size;
    out->accumulate = options.accumulate ? options.accumulate : 1;
    out->seed = options.seed;
    out->shuffle = options.shuffle;
    out->sync_bn = task->options.plan.sync_bn;
    out->fast_reduce = task->options.plan.fast_reduce;
    snprintf(out->amp, sizeof out->amp, "%s", task->options.plan.amp ? task->options.plan.amp : "none");
    out->n_images = task->train->n;
    snprintf(out->optimizer, sizeof out->optimizer, "%s", task->options.plan.optimizer);
    const char *freeze = task->options.plan.freeze ? task->options.plan.freeze : "";
    int n = snprintf(out->freeze, sizeof out->freeze, "%s", freeze);
    if (n < 0 || (size_t)n >= sizeof out->freeze)
        return CVY_FAIL(CVY_ERR_USAGE, "--freeze: is longer than %zu bytes", sizeof out->freeze - 1);
    n = snprintf(out->data, sizeof out->data, "%s", task->options.data);
    if (n < 0 || (size_t)n >= sizeof out->data)
        return CVY_FAIL(CVY_ERR_USAGE, "--data: is longer than %zu bytes", sizeof out->data - 1);
    char chance[160];
    name_chances(&t, &task->options, chance, sizeof chance);
    const char *stored = task->train->as_stored ? " as_stored" : "";
    snprintf(out->preparation, sizeof out->preparation,
             "%" PRId64 "x%" PRId64 "x%" PRId64 " resize=%" PRId64 " pad=%" PRId64
             " flip=%d%s%s%s mean=%.7g,%.7g,%.7g,%.7g std=%.7g,%.7g,%.7g,%.7g",
             t.channels, t.height, t.width, t.resize, t.pad, t.flip, t.is_resized_crop ? " resized_crop" : "",
             chance, stored, (double)t.mean[0], (double)t.mean[1], (double)t.mean[2], (double)t.mean[3],
             (double)t.std[0], (double)t.std[1], (double)t.std[2], (double)t.std[3]);
    return CVY_OK;
}

static void add_text(struct cvy_text *list, const char *name, const char *was, const char *now) {
    if (strcmp(was, now) != 0)
        cvy_text_printf(list, "%s%s %s (was %s)", list->n ? ", " : "", name, now, was);
}

static void add_number(struct cvy_text *list, const char *name, int64_t was, int64_t now) {
    if (was != now)
        cvy_text_printf(list, "%s%s %lld (was %lld)", list->n ? ", " : "", name, LL(now), LL(was));
}

/* The order and the number of an epoch's batches follow from these. */
static void list_order(const struct cvy_train_state *was, const struct cvy_train_state *now,
                       struct cvy_text *list) {
    add_number(list, "--batch-size", was->batch_size, now->batch_size);
    add_number(list, "--accumulate", was->accumulate, now->accumulate);
    add_number(list, "--seed", (int64_t)was->seed, (int64_t)now->seed);
    add_text(list, "order", was->shuffle ? "--shuffle" : "--no-shuffle",
             now->shuffle ? "--shuffle" : "--no-shuffle");
    add_number(list, "training images", was->n_images, now->n_images);
}

static cvy_status compare(const struct cvy_resume *resume, const struct cvy_train_state *now,
                          const cvy_log_sink *log) {
    const struct cvy_train_state *was = &resume->state;
    struct cvy_text list = {0};
    cvy_status status = CVY_OK;
    list_order(was, now, &list);
    if (list.n && was->step > 0) {
        status = CVY_FAIL(CVY_ERR_USAGE,
                          "the checkpoint %s stands in the middle of an epoch, which cannot go on with %s",
                          resume->folder, list.data);
    } else {
        add_text(&list, "batch-norm", was->sync_bn ? "--sync-bn" : "--no-sync-bn",
                 now->sync_bn ? "--sync-bn" : "--no-sync-bn");
        add_text(&list, "--amp", was->amp, now->amp);
        add_text(&list, "sums", was->fast_reduce ? "--fast-reduce" : "--no-fast-reduce",
                 now->fast_reduce ? "--fast-reduce" : "--no-fast-reduce");
        add_text(&list, "--data", was->data, now->data);
        add_text(&list, "images", was->preparation, now->preparation);
        if (list.n)
            cvy_log(log, CVY_LOG_WARNING, "this run goes on otherwise than it began: %s", list.data);
    }
    cvy_text_free(&list);
    return status;
}

cvy_status cvy_resume_check(const struct cvy_resume *resume, const struct cvy_task *task, int64_t n_steps) {
    const struct cvy_train_state *s = &resume->state;
    const cvy_plan_options *plan = &task->options.plan;
    struct cvy_train_state now;
    CVY_TRY(cvy_card_check(&resume->card, task, resume->folder));
    CVY_TRY(cvy_resume_describe(task, &now));
    if (strcmp(s->optimizer, now.optimizer) != 0)
        return CVY_FAIL(CVY_ERR_USAGE, "--opt %s: the checkpoint %s was trained with %s", now.optimizer,
                        resume->folder, s->optimizer);
    if (strcmp(s->freeze, now.freeze) != 0) /* the optimiser has no state of what was frozen */
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "--freeze '%s': the checkpoint %s was trained with --freeze '%s'; leave the flag out, or "
            "begin a new run from its --weights",
            now.freeze, resume->folder, s->freeze);
    CVY_TRY(compare(resume, &now, &plan->log));
    if (s->step >= n_steps)
        return CVY_FAIL(CVY_ERR_DATA, "the checkpoint %s stands at step %lld of an epoch that has %lld here",
                        resume->folder, LL(s->step), LL(n_steps));
    return CVY_OK;
}
