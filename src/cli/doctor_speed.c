/* doctor: the findings of the self-tests: devices, pairs of them, and the loader. */
#include "cli/doctor.h"
#include "cli/doctor_trial.h"

#include "base/thread.h"
#include "data/data.h"
#include "data/loader.h"

#include <stdio.h>
#include <string.h>

/* ---- devices --------------------------------------------------------------------------------------- */

/* Those that were asked for; else all GPUs, else cores in two. */
static void choose_devices(const struct doctor *d, char out[64]) {
    if (d->n_gpus > 1)
        snprintf(out, 64, "cuda:0-%lld", (long long)d->n_gpus - 1);
    else
        snprintf(out, 64, "%s", d->n_gpus == 1 ? "cuda:0" : "cpu:0-1");
}

static void note_rate(struct doctor *d, const char *device, const char *what, double value) {
    char name[128];
    snprintf(name, sizeof name, "%s %s", device, what);
    doctor_measured(d, name, value);
}

static void say_device(struct doctor *d, const struct trial_member *m, double best) {
    const double slow = 2; /* times, at which the others wait longer than they work */
    const bool is_shared = d->n_gpus == 0 && m->trial->list.n > d->n_cores; /* then it is chance */
    const bool is_slow = m->convolutions * slow < best && !is_shared;
    const char *name = m->device->name;
    doctor_say(d, is_slow ? DOCTOR_NOTE : DOCTOR_GOOD,
               is_slow ? "leave it out of --devices, or see what else runs on it" : NULL,
               "%s, all at work: convolutions %.0f GFLOP/s, products %.0f GFLOP/s, memory %.1f GB/s%s", name,
               m->convolutions, m->products, m->memory,
               is_slow ? "; less than half of the fastest, which waits for it in each step" : "");
    note_rate(d, name, "convolutions GFLOP/s", m->convolutions);
    note_rate(d, name, "products GFLOP/s", m->products);
    note_rate(d, name, "memory GB/s", m->memory);
}

static void say_pairs(struct doctor *d, const struct trial *t) {
    char name[80];
    const struct trial_pair *low = t->pairs, *high = t->pairs;
    for (int p = 0; p < t->n_pairs; p++) {
        const struct trial_pair *pair = &t->pairs[p];
        low = doctor_pair_rate(pair) < doctor_pair_rate(low) ? pair : low;
        high = doctor_pair_rate(pair) > doctor_pair_rate(high) ? pair : high;
        snprintf(name, sizeof name, "%s %s", t->members[pair->member[0]].device->name,
                 t->members[pair->member[1]].device->name);
        note_rate(d, name, "all-reduce GB/s", doctor_pair_rate(pair));
    }
    if (t->n_pairs == 1)
        doctor_say(d, DOCTOR_GOOD, NULL, "%s and %s add up right, %.1f GB/s", t->members[0].device->name,
                   t->members[1].device->name, doctor_pair_rate(low));
    else
        doctor_say(d, DOCTOR_GOOD, NULL,
                   "%d pairs of devices add up right, %.1f GB/s (%s and %s) to %.1f GB/s", t->n_pairs,
                   doctor_pair_rate(low), t->members[low->member[0]].device->name,
                   t->members[low->member[1]].device->name, doctor_pair_rate(high));
}

static void check_speed(struct doctor *d) {
    char devices[64];
    struct trial t = {.n_pairs = 0};
    double best = 0;
    choose_devices(d, devices);
    cvy_status status = doctor_trial_run(&t, d->options->devices ? d->options->devices : devices,
                                         d->options->backend, d->log, &d->pool);
    for (int i = 0; status == CVY_OK && i < t.list.n; i++)
        best = t.members[i].convolutions > best ? t.members[i].convolutions : best;
    for (int i = 0; status == CVY_OK && i < t.list.n; i++)
        say_device(d, &t.members[i], best);
    if (status == CVY_OK && t.n_pairs > 0)
        say_pairs(d, &t);
    if (status != CVY_OK)
        doctor_say(d, DOCTOR_BAD, "convoy check, and --devices without the one that failed", "%s",
                   cvy_error());
    doctor_trial_free(&t);
}

const struct doctor_check doctor_check_speed = {
    .name = "speed", .is_live = true, .is_trial = true, .run = check_speed};

/* ---- the loader ------------------------------------------------------------------------------------ */

struct loaded {
    int64_t n;
    double seconds;
};

/* Epoch after epoch, for a second at least; what opening takes does not count. */
static cvy_status load(cvy_loader *loader, struct loaded *out) {
    const double least_s = 1;
    cvy_batch batch;
    int64_t start = 0;
    for (int64_t epoch = 0; out->seconds < least_s; epoch++) {
        cvy_status status;
        CVY_TRY(cvy_loader_start(loader, epoch));
        start = start ? start : cvy_now_ns();
        while (out->seconds < least_s && (status = cvy_loader_next(loader, &batch)) != CVY_END) {
            CVY_TRY(status);
            out->n += batch.n;
            out->seconds = (double)(cvy_now_ns() - start) * 1e-9;
        }
    }
    return CVY_OK;
}

static cvy_status try_loader(const struct cvy_task_options *task, const cvy_log_sink *log,
                             struct loaded *out) {
    cvy_dataset *data = NULL;
    cvy_loader *loader = NULL;
    cvy_loader_options options = task->loader;
    cvy_status status;
    options.augment = true;
    CVY_TRY_OUT(cvy_dataset_open(task->data, CVY_SPLIT_TRAIN, log, &data));
    const bool is_varied = data->height == 0 || data->width == 0;
    if (is_varied && !options.crop[0]) /* what networks for photographs take, unless --crop says otherwise */
        options.crop[0] = options.crop[1] = 224;
    options.batch_size = options.batch_size < data->n ? options.batch_size : data->n;
    CVY_TRY_OUT(cvy_loader_new(data, &options, &loader));
    CVY_TRY_OUT(load(loader, out));
out:
    cvy_loader_free(loader);
    cvy_dataset_free(data);
    return status;
}

cvy_status doctor_load(struct flag_values *values, struct doctor *d) {
    struct cvy_task_options task;
    struct loaded loaded = {0, 0};
    if (!d->options->data && !d->options->data_path)
        return CVY_OK;
    d->check = "loader";
    CVY_TRY(options_task(values, CVY_TASK_TRAIN, d->log, &task));
    if (d->options->quick == 1 || *d->root)
        return CVY_OK;
    cvy_status status = try_loader(&task, d->log, &loaded);
    if (status == CVY_ERR_USAGE || status == CVY_ERR_DATA) /* what was given is at fault, not the machine */
        return status;
    if (status != CVY_OK) {
        doctor_say(d, DOCTOR_BAD, "convoy data check, which says all that is wrong with it", "%s",
                   cvy_error());
        return d->status;
    }
    double rate = (double)loaded.n / loaded.seconds;
    doctor_say(d, DOCTOR_GOOD, NULL, "'%s': %.0f images/s by %d thread%s, read and augmented as in training",
               task.data, rate, task.loader.workers ? task.loader.workers : 1,
               task.loader.workers > 1 ? "s" : "");
    doctor_measured(d, "loader images/s", rate);
    return d->status;
}
