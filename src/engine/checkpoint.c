/* See checkpoint.h. A folder cannot be renamed over one that is not empty; renameat2 exchanges the two in one
   step, and where the file system cannot do that the old one is moved aside for a moment. */
#include "engine/checkpoint.h"

#include "base/file.h"
#include "engine/session.h"
#include "engine/world.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WEIGHTS "model.safetensors"
#define OPTIMIZER "optimizer.safetensors"
#define STATE "state.json"
#define AVERAGE "ema.safetensors"

static const char *const files[] = {WEIGHTS, OPTIMIZER, STATE, AVERAGE};
enum { N_FILES = sizeof files / sizeof files[0], MAX_STATE_BYTES = 1 << 20 };

static cvy_status join(char **out, const char *folder, const char *name, const char *suffix) {
    struct cvy_text text = {0};
    cvy_text_printf(&text, "%s/%s%s", folder, name, suffix);
    return cvy_text_take(&text, out);
}

/* ---- folders ------------------------------------------------------------------------------------------ */

static cvy_status make_one(const char *path) {
    struct stat info;
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode)))
        return CVY_OK;
    int reason = errno == EEXIST ? ENOTDIR : errno;
    return CVY_FAIL(CVY_ERR_IO, "%s: cannot make this folder: %s", path, strerror(reason));
}

cvy_status cvy_make_folder(const char *path) {
    char *copy = strdup(path);
    if (!copy)
        return CVY_FAIL(CVY_ERR_MEMORY, "%s: out of memory", path);
    cvy_status status = CVY_OK;
    for (char *at = copy + 1; *copy && *at && status == CVY_OK; at++) {
        if (*at != '/')
            continue;
        *at = 0;
        status = make_one(copy);
        *at = '/';
    }
    if (status == CVY_OK)
        status = make_one(copy);
    free(copy);
    return status;
}

/* Removes a checkpoint's own files, whole or half-written, then the folder; leaves anything else alone. */
static void remove_checkpoint(const char *folder) {
    const char *suffixes[] = {"", ".tmp"};
    for (int i = 0; i < N_FILES; i++)
        for (int k = 0; k < 2; k++) {
            char *path;
            if (join(&path, folder, files[i], suffixes[k]) == CVY_OK) {
                unlink(path);
                free(path);
            }
        }
    rmdir(folder);
}

/* `fresh` takes the name `place`; what had it before is removed. */
static cvy_status put_in_place(const char *fresh, const char *place, const char *aside) {
    if (renameat2(AT_FDCWD, fresh, AT_FDCWD, place, RENAME_NOREPLACE) == 0)
        return CVY_OK;
    if (renameat2(AT_FDCWD, fresh, AT_FDCWD, place, RENAME_EXCHANGE) == 0) {
        remove_checkpoint(fresh);
        return CVY_OK;
    }
    remove_checkpoint(aside);
    bool had_one = rename(place, aside) == 0;
    if (rename(fresh, place) != 0) {
        int reason = errno;
        if (had_one && rename(aside, place) != 0)
            return CVY_FAIL(CVY_ERR_IO, "%s: cannot be put back in its place: %s", aside, strerror(errno));
        return CVY_FAIL(CVY_ERR_IO, "%s: cannot be replaced: %s", place, strerror(reason));
    }
    remove_checkpoint(aside);
    return CVY_OK;
}

/* ---- state.json --------------------------------------------------------------------------------------- */

/* Only runs with --amp fp16 have one. */
static int add_scale(json_t *root, const struct cvy_loss_scale *s) {
    if (s->scale <= 0)
        return 0;
    return json_object_set_new(root, "loss_scale",
                               json_pack("{s:f, s:I, s:I}", "scale", s->scale, "good_updates",
                                         (json_int_t)s->n_good, "skipped_updates", (json_int_t)s->n_skipped));
}

/* Only runs with --model-ema that have averaged. */
static int add_averaged(json_t *root, int64_t n) {
    return n ? json_object_set_new(root, "averaged", json_integer((json_int_t)n)) : 0;
}

/* Only runs with --fast-reduce say it. */
static int add_fast_reduce(json_t *root, bool is_it) {
    return is_it ? json_object_set_new(root, "fast_reduce", json_true()) : 0;
}

static int parse_scale(json_t *root, json_error_t *error, struct cvy_loss_scale *out) {
    json_int_t n_good, n_skipped;
    json_t *object = json_object_get(root, "loss_scale");
    *out = (struct cvy_loss_scale){.scale = 0};
    if (!object)
        return 0;
    int failed = json_unpack_ex(object, error, 0, "{s:F, s:I, s:I}", "scale", &out->scale, "good_updates",
                                &n_good, "skipped_updates", &n_skipped);
    out->n_good = failed ? 0 : n_good;
    out->n_skipped = failed ? 0 : n_skipped;
    return failed;
}

static cvy_status write_state(const char *path, const struct cvy_train_state *s) {
    json_t *root = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:b, s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:I, s:I}",
        "epoch", (json_int_t)s->epoch, "step", (json_int_t)s->step, "updates", (json_int_t)s->n_updates,
        "batch_size", (json_int_t)s->batch_size, "accumulate", (json_int_t)s->accumulate, "sync_bn",
        (int)s->sync_bn, "seed", (json_int_t)s->seed, "shuffle", (int)s->shuffle, "data_images",
        (json_int_t)s->n_images, "data", s->data, "preparation", s->preparation, "optimizer", s->optimizer,
        "train_images", (json_int_t)s->train.n, "train_top1_count", (json_int_t)s->train.top1,
        "train_top5_count", (json_int_t)s->train.top5, "train_loss_sum", s->train.loss_sum, "train_s",
        s->train_s, "best_epoch", (json_int_t)s->best_epoch, "best_top1_count", (json_int_t)s->best_top1);
    bool is_mixed = strcmp(s->amp, "none") != 0; /* checkpoints of earlier versions do not say these two */
    if (root && ((is_mixed && json_object_set_new(root, "amp", json_string(s->amp)) != 0) ||
                 (*s->freeze && json_object_set_new(root, "freeze", json_string(s->freeze)) != 0) ||
                 add_scale(root, &s->scale) != 0 || add_averaged(root, s->n_averaged) != 0 ||
                 add_fast_reduce(root, s->fast_reduce) != 0)) {
        json_decref(root);
        root = NULL;
    }
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    if (!text)
        return CVY_FAIL(CVY_ERR_MEMORY, "%s: no memory to write it", path);
    cvy_status status = cvy_write_file(path, text, strlen(text));
    free(text);
    return status;
}

static cvy_status parse_state(const char *text, struct cvy_train_state *out) {
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return CVY_FAIL(CVY_ERR_DATA, "line %d: %s", error.line, error.text);
    json_int_t accumulate = 1, averaged = 0; /* checkpoints of earlier versions do not say them */
    json_int_t epoch, step, updates, batch, seed, n_images, n, top1, top5, best_epoch, best_top1;
    double loss, train_s;
    int shuffle, sync_bn = 0, fast_reduce = 0;
    const char *optimizer, *data, *preparation, *amp = "none", *freeze = "";
    int failed = json_unpack_ex(
        root, &error, 0,
        "{s?b, s?s, s?s, s?I, s:I, s:I, s:I, s:I, s?I, s?b, s:I, s:b, s:I, s:s, s:s, s:s, s:I, "
        "s:I, s:I, s:F, s:F, s:I, s:I}",
        "fast_reduce", &fast_reduce, "amp", &amp, "freeze", &freeze, "averaged", &averaged, "epoch", &epoch,
        "step", &step, "updates", &updates, "batch_size", &batch, "accumulate", &accumulate, "sync_bn",
        &sync_bn, "seed", &seed, "shuffle", &shuffle, "data_images", &n_images, "data", &data, "preparation",
        &preparation, "optimizer", &optimizer, "train_images", &n, "train_top1_count", &top1,
        "train_top5_count", &top5, "train_loss_sum", &loss, "train_s", &train_s, "best_epoch", &best_epoch,
        "best_top1_count", &best_top1);
    struct cvy_loss_scale scale = {.scale = 0};
    failed = failed || parse_scale(root, &error, &scale);
    if (failed || scale.scale < 0 || epoch < 0 || step < 0 || updates < 0 || batch < 1 || accumulate < 1) {
        json_decref(root);
        return CVY_FAIL(CVY_ERR_DATA, "%s; it must be as a checkpoint writes it",
                        failed ? error.text : "a count is negative");
    }
    *out = (struct cvy_train_state){.epoch = epoch,
                                    .step = step,
                                    .n_updates = updates,
                                    .batch_size = batch,
                                    .accumulate = accumulate,
                                    .seed = (uint64_t)seed,
                                    .shuffle = shuffle != 0,
                                    .sync_bn = sync_bn != 0,
                                    .fast_reduce = fast_reduce != 0,
                                    .n_images = n_images,
                                    .train = {.n = n, .top1 = top1, .top5 = top5, .loss_sum = loss},
                                    .train_s = train_s,
                                    .scale = scale,
                                    .n_averaged = averaged,
                                    .best_epoch = best_epoch,
                                    .best_top1 = best_top1};
    snprintf(out->amp, sizeof out->amp, "%s", amp);
    snprintf(out->freeze, sizeof out->freeze, "%s", freeze);
    snprintf(out->optimizer, sizeof out->optimizer, "%s", optimizer);
    snprintf(out->data, sizeof out->data, "%s", data);
    snprintf(out->preparation, sizeof out->preparation, "%s", preparation);
    json_decref(root);
    return CVY_OK;
}

cvy_status cvy_checkpoint_state(const char *folder, struct cvy_train_state *out) {
    char *path, *text;
    size_t n;
    CVY_TRY(join(&path, folder, STATE, ""));
    cvy_status status = cvy_read_file(path, MAX_STATE_BYTES, &text, &n);
    if (status == CVY_OK) {
        status = parse_state(text, out);
        free(text);
        if (status != CVY_OK)
            cvy_fail_prefix(status, "%s: ", path);
    }
    free(path);
    return status;
}

/* ---- save and load ------------------------------------------------------------------------------------ */

/* In the session, as the weights. */
static cvy_status save_average(struct cvy_ema *ema, const struct cvy_card *card, const char *path) {
    CVY_TRY(cvy_ema_swap(ema));
    cvy_status status = cvy_card_save(card, ema->session, path);
    return status == CVY_OK ? cvy_ema_swap(ema) : status;
}

static cvy_status load_average(struct cvy_ema *ema, const char *path, const struct cvy_train_state *state) {
    if (!ema->session)
        return CVY_OK;
    if (access(path, F_OK) != 0)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "--model-ema: %s is not there, for the run that goes on had no such average; leave the flag "
            "out, or begin a new run with --weights",
            path);
    CVY_TRY(cvy_load_weights(ema->session, path));
    ema->n_averaged = state->n_averaged;
    return cvy_ema_copy(ema);
}

static cvy_status write_files(const char *folder, cvy_session *session, const struct cvy_card *card,
                              const struct cvy_train_state *state, struct cvy_ema *ema) {
    char *path[N_FILES] = {NULL};
    cvy_status status = CVY_OK;
    for (int i = 0; i < N_FILES && status == CVY_OK; i++)
        status = join(&path[i], folder, files[i], "");
    if (status == CVY_OK)
        status = cvy_card_save(card, session, path[0]);
    if (status == CVY_OK)
        status = cvy_session_save_optimizer(session, path[1]);
    if (status == CVY_OK && cvy_world_rank(session->plan->options.world) == 0)
        status = write_state(path[2], state);
    if (status == CVY_OK && ema->session)
        status = save_average(ema, card, path[3]);
    for (int i = 0; i < N_FILES; i++)
        free(path[i]);
    return status;
}

cvy_status cvy_checkpoint_save(const char *dir, const char *name, cvy_session *session,
                               const struct cvy_card *card, const struct cvy_train_state *state,
                               struct cvy_ema *ema) {
    cvy_world *world = session->plan->options.world;
    bool is_writer = cvy_world_rank(world) == 0;
    char *place = NULL, *fresh = NULL, *aside = NULL;
    cvy_status status;
    CVY_TRY_OUT(join(&place, dir, name, ""));
    CVY_TRY_OUT(join(&fresh, dir, name, ".new"));
    CVY_TRY_OUT(join(&aside, dir, name, ".old"));
    if (is_writer)
        cvy_checkpoint_tidy(dir, name);
    status = is_writer ? make_one(fresh) : CVY_OK;
    CVY_TRY_OUT(cvy_world_share_failure(world, status, fresh));
    status = write_files(fresh, session, card, state, ema);
    if (status == CVY_OK && is_writer)
        status = put_in_place(fresh, place, aside);
    if (status != CVY_OK && is_writer)
        remove_checkpoint(fresh);
    if (status != CVY_ERR_LOST)
        status = cvy_world_share_failure(world, status, place);
out:
    free(place);
    free(fresh);
    free(aside);
    return status;
}

void cvy_checkpoint_tidy(const char *dir, const char *name) {
    char *place = NULL, *fresh = NULL, *aside = NULL;
    if (join(&place, dir, name, "") == CVY_OK && join(&fresh, dir, name, ".new") == CVY_OK &&
        join(&aside, dir, name, ".old") == CVY_OK) {
        remove_checkpoint(fresh);
        if (renameat2(AT_FDCWD, aside, AT_FDCWD, place, RENAME_NOREPLACE) != 0)
            remove_checkpoint(aside);
    }
    free(place);
    free(fresh);
    free(aside);
}

void cvy_checkpoint_remove(const char *dir, const char *name) {
    char *place;
    if (join(&place, dir, name, "") == CVY_OK) {
        remove_checkpoint(place);
        free(place);
    }
}

cvy_status cvy_checkpoint_load(const char *folder, cvy_session *session, const struct cvy_train_state *state,
                               struct cvy_ema *ema) {
    char *weights = NULL, *optimizer = NULL, *average = NULL;
    cvy_status status;
    CVY_TRY_OUT(join(&weights, folder, WEIGHTS, ""));
    CVY_TRY_OUT(join(&optimizer, folder, OPTIMIZER, ""));
    CVY_TRY_OUT(join(&average, folder, AVERAGE, ""));
    CVY_TRY_OUT(load_average(ema, average, state));
    CVY_TRY_OUT(cvy_load_weights(session, weights));
    CVY_TRY_OUT(cvy_session_load_optimizer(session, optimizer, state->n_updates));
    if (session->scale.scale > 0 && state->scale.scale > 0)
        session->scale = state->scale;
out:
    free(weights);
    free(optimizer);
    free(average);
    return status;
}

/* ---- finding ------------------------------------------------------------------------------------------ */

cvy_status cvy_checkpoint_find(const char *path, const char *name, const char *file, char **out) {
    char *below = NULL, *direct = NULL, *nested = NULL;
    cvy_status status;
    CVY_TRY_OUT(join(&below, path, name, ""));
    CVY_TRY_OUT(join(&direct, path, file, ""));
    CVY_TRY_OUT(join(&nested, below, file, ""));
    if (access(direct, R_OK) == 0) {
        *out = strdup(path);
        status = *out ? CVY_OK : CVY_FAIL(CVY_ERR_MEMORY, "%s: out of memory", path);
    } else if (access(nested, R_OK) == 0) {
        *out = below;
        below = NULL;
    } else {
        status = CVY_FAIL(CVY_ERR_DATA, "%s: no checkpoint is there: neither %s nor %s/%s can be read", path,
                          file, name, file);
    }
out:
    free(below);
    free(direct);
    free(nested);
    return status;
}

cvy_status cvy_weights_find(const char *path, char **out) {
    struct stat info;
    if (stat(path, &info) != 0)
        return CVY_FAIL(CVY_ERR_DATA, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode)) {
        *out = strdup(path);
        return *out ? CVY_OK : CVY_FAIL(CVY_ERR_MEMORY, "%s: out of memory", path);
    }
    char *folder;
    CVY_TRY(cvy_checkpoint_find(path, "best", WEIGHTS, &folder));
    cvy_status status = join(out, folder, WEIGHTS, "");
    free(folder);
    return status;
}
