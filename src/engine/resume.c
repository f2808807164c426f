/* See resume.h. */
#include "engine/resume.h"

#include "base/file.h"
#include "base/text.h"
#include "data/data.h"
#include "engine/run_folder.h"
#include "engine/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LL(x) ((long long)(x))

/* ---- finding -------------------------------------------------------------------------------------------- */

/* The names that a checkpoint may have in a run's folder; ".old" and ".new" where one could not be renamed. */
static const char *const places[] = {"last", "best", "last.old", "best.old", "last.new", "best.new"};
enum { N_PLACES = sizeof places / sizeof places[0], N_OLD = 4 /* those that were whole once */ };

static void pass_over(const char *folder, const char *reason, const cvy_log_sink *log) {
    cvy_log(log, CVY_LOG_WARNING, "--resume auto passes over %s: %s", folder, reason);
}

/* updates[i]: of the checkpoint places[i], -1 where none counts. *has_old: there has been a checkpoint. */
static cvy_status look_at(const char *dir, int64_t updates[N_PLACES], bool *has_old,
                          const cvy_log_sink *log) {
    struct cvy_train_state state;
    *has_old = false;
    for (int i = 0; i < N_PLACES; i++) {
        char *folder;
        updates[i] = -1;
        CVY_TRY(cvy_path(dir, places[i], "", &folder));
        if (access(folder, F_OK) == 0) {
            *has_old = *has_old || i < N_OLD;
            if (cvy_checkpoint_state(folder, &state) == CVY_OK)
                updates[i] = state.n_updates;
            else
                pass_over(folder, cvy_error(), log);
        }
        free(folder);
    }
    return CVY_OK;
}

static bool is_whole(const char *folder, const cvy_log_sink *log) {
    bool has_manifest;
    if (cvy_checkpoint_verify(folder, &has_manifest) != CVY_OK)
        pass_over(folder, cvy_error(), log);
    else if (!has_manifest)
        pass_over(folder, "it has no manifest.json, so whether it is whole cannot be told", log);
    else
        return true;
    return false;
}

/* *out: index of the place with the most updates that is whole; -1: there has been no checkpoint yet. A run whose
   checkpoints are all damaged is not begun anew: that would be the end of what can still be saved of it. */
static cvy_status find_newest(const char *dir, const cvy_log_sink *log, int64_t *out) {
    int64_t updates[N_PLACES];
    bool has_old;
    CVY_TRY(look_at(dir, updates, &has_old, log));
    for (*out = -1;; *out = -1) {
        for (int i = 0; i < N_PLACES; i++)
            *out = updates[i] >= 0 && (*out < 0 || updates[i] > updates[*out]) ? i : *out;
        if (*out < 0)
            break;
        char *folder;
        CVY_TRY(cvy_path(dir, places[*out], "", &folder));
        bool is_found = is_whole(folder, log);
        if (is_found)
            cvy_log(log, CVY_LOG_INFO, "--resume auto takes %s, after update %lld", folder,
                    LL(updates[*out]));
        free(folder);
        if (is_found)
            return CVY_OK;
        updates[*out] = -1;
    }
    if (has_old)
        return CVY_FAIL(CVY_ERR_DATA,
                        "--resume auto: no checkpoint in %s is whole, the warnings say why: move %s away, or "
                        "give another "
                        "--output-dir, and a new run begins",
                        dir, dir);
    cvy_log(log, CVY_LOG_INFO, "--resume auto: no checkpoint is in %s yet, a new run begins", dir);
    return CVY_OK;
}

static cvy_status find_automatically(const char *dir, cvy_world *world, const cvy_log_sink *log,
                                     struct cvy_resume *out) {
    int64_t place = -1;
    cvy_status status = cvy_world_rank(world) == 0 ? find_newest(dir, log, &place) : CVY_OK;
    CVY_TRY(cvy_world_share_failure(world, status, "--resume auto"));
    CVY_TRY(cvy_world_broadcast(world, 0, &place, sizeof place, "--resume auto"));
    return place < 0 ? CVY_OK : cvy_path(dir, places[place], "", &out->folder);
}

/* PATH, else PATH/last; where only PATH/best is left, it is named. */
static cvy_status find_folder(const char *path, char **out) {
    char *best;
    cvy_status status = cvy_checkpoint_find(path, "last", "state.json", out);
    if (status != CVY_ERR_DATA)
        return status;
    CVY_TRY(cvy_path(path, "best", "/state.json", &best));
    if (access(best, R_OK) == 0)
        status =
            CVY_FAIL(CVY_ERR_DATA,
                     "%s/last: no checkpoint is there, but %s/best is one: --resume %s/best goes on from it",
                     path, path, path);
    free(best);
    return status;
}

/* A checkpoint that was asked for by name is the only one: what else there may be is for the user to say. */
static cvy_status verify_named(const char *folder, bool *has_manifest) {
    cvy_status status = cvy_checkpoint_verify(folder, has_manifest);
    if (status != CVY_ERR_DATA)
        return status;
    struct cvy_error why;
    cvy_error_save(&why, status);
    return CVY_FAIL(status, "%s; --resume auto, with the run's --output-dir, takes the newest that is whole",
                    why.message);
}

static cvy_status find_named(const char *path, bool is_verified, const cvy_log_sink *log,
                             struct cvy_resume *out) {
    bool has_manifest = true;
    CVY_TRY(find_folder(path, &out->folder));
    if (is_verified)
        CVY_TRY(verify_named(out->folder, &has_manifest));
    if (!has_manifest)
        cvy_log(
            log, CVY_LOG_WARNING,
            "%s has no manifest.json: an earlier version of Convoy wrote it, and whether its files are whole "
            "cannot be told",
            out->folder);
    return CVY_OK;
}

/* ---- reading -------------------------------------------------------------------------------------------- */

static cvy_status read_found(struct cvy_resume *out) {
    char *weights;
    CVY_TRY(cvy_checkpoint_state(out->folder, &out->state));
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

/* A folder that is not the same for all processes is found before they train apart. */
static cvy_status agree(const struct cvy_resume *resume, cvy_world *world) {
    const struct cvy_train_state *s = &resume->state;
    struct cvy_text text = {0};
    cvy_text_printf(&text, "epoch %lld\nstep %lld\nupdate %lld", LL(s->epoch), LL(s->step), LL(s->n_updates));
    cvy_status status = text.status == CVY_OK
                            ? cvy_world_agree(world, text.data, "the checkpoint to go on from")
                            : text.status;
    cvy_text_free(&text);
    return status;
}

cvy_status cvy_resume_open(const char *path, const char *dir, cvy_world *world, const cvy_log_sink *log,
                           struct cvy_resume *out) {
    cvy_status status;
    if (strcmp(path, CVY_RESUME_AUTO) == 0) {
        CVY_TRY(find_automatically(dir, world, log, out));
        if (!out->folder)
            return CVY_OK;
        status = read_found(out);
    } else {
        status = find_named(path, cvy_world_rank(world) == 0, log, out);
        if (status == CVY_OK)
            status = read_found(out);
    }
    CVY_TRY(cvy_world_share_failure(world, status, "the checkpoint of --resume"));
    return agree(out, world);
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
    if (s->step > n_steps) /* n_steps: the epoch's evaluation is still to come */
        return CVY_FAIL(CVY_ERR_DATA, "the checkpoint %s stands at step %lld of an epoch that has %lld here",
                        resume->folder, LL(s->step), LL(n_steps));
    return CVY_OK;
}
