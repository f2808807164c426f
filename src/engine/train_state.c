/* See train_state.h. Fields that only some runs have are written only where they say something: so checkpoints of
   earlier versions can be read, and those of plain runs stay as they were. */
#include "engine/train_state.h"

#include "base/file.h"
#include "engine/json_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STATE_BYTES = 1 << 20 };

/* Only runs with --amp fp16 have one, and those with --on-nan skip that have skipped. */
static int add_scale(json_t *root, const struct cvy_loss_scale *s) {
    if (s->scale <= 0 && s->n_skipped == 0)
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

cvy_status cvy_train_state_write(const char *path, const struct cvy_train_state *s) {
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
    return cvy_write_json(path, root, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
}

static cvy_status parse(const char *text, struct cvy_train_state *out) {
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

cvy_status cvy_train_state_read(const char *path, struct cvy_train_state *out) {
    char *text;
    size_t n;
    CVY_TRY(cvy_read_file(path, MAX_STATE_BYTES, &text, &n));
    cvy_status status = parse(text, out);
    free(text);
    return status == CVY_OK ? CVY_OK : cvy_fail_prefix(status, "%s: ", path);
}
