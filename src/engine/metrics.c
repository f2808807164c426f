/* See metrics.h. Written with write(2) in one call per line, so that nothing waits in a buffer and a failed
   write can be taken back. */
#include "engine/metrics.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cvy_metrics_file {
    int fd;
    char *path;
};

static double per_image(double sum, const struct cvy_tally *tally) {
    return tally->n > 0 ? sum / (double)tally->n : 0;
}
double cvy_tally_top1(const struct cvy_tally *tally) { return per_image(100.0 * (double)tally->top1, tally); }
double cvy_tally_top5(const struct cvy_tally *tally) { return per_image(100.0 * (double)tally->top5, tally); }
double cvy_tally_loss(const struct cvy_tally *tally) { return per_image(tally->loss_sum, tally); }

cvy_status cvy_metrics_open(const char *path, bool is_new, struct cvy_metrics_file **out) {
    struct cvy_metrics_file *file;
    CVY_TRY(CVY_ALLOC(file, 1));
    file->path = strdup(path);
    file->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | (is_new ? O_TRUNC : 0), 0666);
    if (!file->path || file->fd < 0) {
        cvy_status status = CVY_FAIL(CVY_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
        cvy_metrics_close(file);
        return status;
    }
    *out = file;
    return CVY_OK;
}

void cvy_metrics_close(struct cvy_metrics_file *file) {
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    free(file);
}

/* Is the line of what comes after `epoch` and `step`? Lines that are not ours never are. */
static bool comes_after(const char *line, size_t n, int64_t epoch, int64_t step) {
    json_t *object = json_loadb(line, n, 0, NULL);
    const char *event = json_string_value(json_object_get(object, "event"));
    const json_t *line_epoch = json_object_get(object, "epoch"), *line_step = json_object_get(object, "step");
    const int64_t e = json_integer_value(line_epoch);
    bool is_after = false;
    if (event && json_is_integer(line_epoch) && strcmp(event, "epoch") == 0)
        is_after = e >= epoch;
    else if (event && json_is_integer(line_epoch) && json_is_integer(line_step) && strcmp(event, "step") == 0)
        is_after = e > epoch || (e == epoch && json_integer_value(line_step) >= step);
    json_decref(object);
    return is_after;
}

cvy_status cvy_metrics_cut(struct cvy_metrics_file *file, int64_t epoch, int64_t step) {
    FILE *in = fopen(file->path, "re");
    char *line = NULL;
    size_t room = 0;
    off_t keep = 0;
    ssize_t n;
    if (!in)
        return CVY_FAIL(CVY_ERR_IO, "%s: cannot be read: %s", file->path, strerror(errno));
    while ((n = getline(&line, &room, in)) > 0) {
        if (line[n - 1] != '\n' || comes_after(line, (size_t)n, epoch, step))
            break;
        keep += n;
    }
    bool has_failed = ferror(in) != 0 || ftruncate(file->fd, keep) != 0;
    int reason = errno;
    free(line);
    fclose(in);
    return has_failed ? CVY_FAIL(CVY_ERR_IO, "%s: cannot be cut back: %s", file->path, strerror(reason))
                      : CVY_OK;
}

/* Takes `object`. */
static cvy_status append(struct cvy_metrics_file *file, json_t *object) {
    char *line = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(object);
    if (!line)
        return CVY_FAIL(CVY_ERR_MEMORY, "%s: out of memory for a line", file->path);
    size_t n = strlen(line);
    line[n] = '\n'; /* in place of the terminating zero: one write, one line */
    cvy_status status = cvy_append_whole(file->fd, file->path, line, n + 1);
    free(line);
    return status;
}

/* JSON has no NaN and no infinity: null stands for them. */
static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

cvy_status cvy_metrics_step(struct cvy_metrics_file *file, const struct cvy_step_report *r) {
    const cvy_metrics *m = &r->metrics;
    json_t *object = json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:o}", "event", "step", "epoch",
                               (json_int_t)r->epoch, "step", (json_int_t)r->step, "update",
                               (json_int_t)(r->epoch * r->n_steps + r->step), "lr", number(r->lr), "loss",
                               number(m->loss), "images", (json_int_t)m->n, "top1_count", (json_int_t)m->top1,
                               "top5_count", (json_int_t)m->top5, "images_per_s", number(r->images_per_s));
    const bool is_scaled = r->scale.scale > 0;
    if (object && ((is_scaled && json_object_set_new(object, "loss_scale", number(r->scale.scale))) ||
                   ((is_scaled || r->scale.is_skipped) &&
                    json_object_set_new(object, "skipped", json_boolean(r->scale.is_skipped))))) {
        json_decref(object);
        object = NULL;
    }
    if (object && r->is_clipped && json_object_set_new(object, "grad_norm", number(m->grad_norm))) {
        json_decref(object);
        object = NULL;
    }
    return append(file, object);
}

/* Adds PREFIX_images, PREFIX_loss, … to the object. */
static int add_tally(json_t *object, const char *prefix, const struct cvy_tally *t) {
    const struct {
        const char *key;
        json_t *value;
    } entries[] = {
        {"images", json_integer(t->n)},        {"loss", number(cvy_tally_loss(t))},
        {"top1", number(cvy_tally_top1(t))},   {"top5", number(cvy_tally_top5(t))},
        {"top1_count", json_integer(t->top1)}, {"top5_count", json_integer(t->top5)},
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s_%s", prefix, entries[i].key);
        failed |= json_object_set_new(object, key, entries[i].value);
    }
    return failed;
}

cvy_status cvy_metrics_epoch(struct cvy_metrics_file *file, const struct cvy_epoch_report *r) {
    double rate = r->train_s > 0 ? (double)r->train.n / r->train_s : 0;
    json_t *object =
        json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:b}", "event", "epoch", "epoch", (json_int_t)r->epoch,
                  "lr", number(r->lr), "train_s", number(r->train_s), "val_s", number(r->val_s),
                  "images_per_s", number(rate), "best", (int)r->is_best);
    if (object && (add_tally(object, "train", &r->train) || add_tally(object, "val", &r->val) ||
                   (r->ema.n > 0 && add_tally(object, "ema", &r->ema)))) {
        json_decref(object);
        object = NULL;
    }
    return append(file, object);
}
