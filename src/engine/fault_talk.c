/* communication-exposed: devices stand and talk where they could compute. Buckets that are too small pay for each
   message anew; where they are large enough, a larger batch talks less for each image. */
#include "engine/faults.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double SHARE = 0.1; /* of a step */
static const double MB = 1048576, BUCKET_MB = 25, FIRST_BUCKET_MB = 1;

struct fit { /* us = each * buckets + per_byte * bytes */
    double each, per_byte;
};

/* Least squares over the buckets that a device waits for; neither number is below 0. */
static struct fit fit_buckets(const struct cvy_scene *scene, size_t device, double *n, double *bytes) {
    const struct cvy_replay_device *d = &scene->replay.devices.data[device];
    const struct cvy_profile_device *about = &scene->file->devices.data[device];
    double us = 0, xx = 0, xy = 0;
    *n = *bytes = 0;
    for (size_t k = 0; k < d->instrs.n; k++) {
        const struct cvy_replay_instr *i = &d->instrs.data[k];
        if (i->kind != CVY_I_WAIT || i->bucket < 0 || (size_t)i->bucket >= about->bucket_bytes.n)
            continue;
        const double x = about->bucket_bytes.data[i->bucket];
        *n += 1;
        *bytes += x;
        us += i->own_us;
        xx += x * x;
        xy += x * i->own_us;
    }
    const double spread = *n * xx - *bytes * *bytes;
    if (*n < 2 || spread <= 1e-9 * *n * xx)
        return (struct fit){*n > 0 ? us / *n : 0, 0};
    const double slope = (*n * xy - *bytes * us) / spread, each = (us - slope * *bytes) / *n;
    if (slope < 0)
        return (struct fit){us / *n, 0};
    return each < 0 ? (struct fit){0, us / *bytes} : (struct fit){each, slope};
}

/* Buckets of the usual size that so many bytes make. */
static double usual_buckets(double bytes) {
    return 1 + ceil((bytes > FIRST_BUCKET_MB * MB ? bytes - FIRST_BUCKET_MB * MB : 0) / (BUCKET_MB * MB));
}

/* As with buckets of the usual size: what handing in and waiting take falls as the fit says. */
static double merge_buckets(struct cvy_scene *scene) {
    double most = 0;
    for (size_t d = 0; d < scene->replay.devices.n; d++) {
        struct cvy_replay_device *device = &scene->replay.devices.data[d];
        double n, bytes;
        const struct fit fit = fit_buckets(scene, d, &n, &bytes);
        const double usual = usual_buckets(bytes), now = fit.each * n + fit.per_byte * bytes;
        if (n <= usual || now <= 0)
            continue;
        most = n > most ? n : most;
        for (size_t k = 0; k < device->instrs.n; k++) {
            struct cvy_replay_instr *i = &device->instrs.data[k];
            if (i->kind == CVY_I_WAIT)
                i->own_us *= (fit.each * usual + fit.per_byte * bytes) / now;
            else if (i->kind == CVY_I_REDUCE)
                i->own_us *= usual / n;
        }
    }
    return most;
}

static cvy_status without_talk(const struct cvy_scene *scene, double *exposed_us, double *span_us) {
    struct cvy_scene silent = {0};
    double left, busiest;
    cvy_status status;
    CVY_TRY_OUT(cvy_scene_copy(scene, &silent));
    for (size_t d = 0; d < silent.replay.devices.n; d++) {
        struct cvy_replay_device *device = &silent.replay.devices.data[d];
        for (size_t k = 0; k < device->instrs.n; k++)
            device->instrs.data[k].own_us *= cvy_scene_is_talk(&device->instrs.data[k]) ? 0 : 1;
    }
    CVY_TRY_OUT(cvy_scene_simulate(scene, span_us, &busiest));
    CVY_TRY_OUT(cvy_scene_simulate(&silent, &left, &busiest));
    *exposed_us = *span_us - left;
out:
    cvy_scene_free(&silent);
    return status;
}

/* k times the batch: k times the passes, once the talk. */
static void grow_batch(struct cvy_scene *scene, double k) {
    scene->batches *= k;
    for (size_t d = 0; d < scene->replay.devices.n; d++) {
        struct cvy_replay_device *device = &scene->replay.devices.data[d];
        for (size_t i = 0; i < device->instrs.n; i++) {
            const enum cvy_instr_kind kind = device->instrs.data[i].kind;
            if (kind == CVY_I_RUN || kind == CVY_I_LOAD || kind == CVY_I_SEND || kind == CVY_I_RECV)
                device->instrs.data[i].own_us *= k;
        }
    }
}

static cvy_status mend(struct cvy_scene *scene, struct cvy_verdict *out) {
    const struct cvy_profile_file *file = scene->file;
    struct cvy_scene merged = {0};
    double exposed, span, still, merged_span;
    bool has_slow;
    cvy_status status = CVY_OK;
    if (file->has_streams || file->devices.n < 2)
        return CVY_OK;
    CVY_TRY_OUT(cvy_find_slow_device(scene, &has_slow));
    CVY_TRY_OUT(without_talk(scene, &exposed, &span));
    if (has_slow || exposed < SHARE * span) /* a slow device is slow to talk, too */
        goto out;
    CVY_TRY_OUT(cvy_scene_copy(scene, &merged));
    const double n = merge_buckets(&merged);
    CVY_TRY_OUT(without_talk(&merged, &still, &merged_span));
    snprintf(out->cause, sizeof out->cause,
             "devices talk, and do not compute, for %.0f %% of the time that they work on a step",
             100 * exposed / span);
    if (n > 0 && span > 1.1 * merged_span) {
        const size_t end = strlen(out->cause);
        snprintf(out->cause + end, sizeof out->cause - end, ": %.0f buckets (--bucket-mb %g)", n,
                 file->bucket_mb);
        snprintf(out->flags, sizeof out->flags, "--bucket-mb %g --first-bucket-mb %g", BUCKET_MB,
                 FIRST_BUCKET_MB);
        snprintf(out->advice, sizeof out->advice, "take %s, larger buckets: results are the same",
                 out->flags);
        merge_buckets(scene);
        goto out;
    }
    const int64_t k = cvy_scene_growth(scene, 4);
    if (k == 1)
        goto out;
    snprintf(out->flags, sizeof out->flags, "--batch-size %lld", (long long)(file->batch_size * k));
    snprintf(out->advice, sizeof out->advice,
             "take %s, which talks as much for %lld times as many images, and scale --lr; or a faster "
             "network, or fewer "
             "devices",
             out->flags, (long long)k);
    grow_batch(scene, (double)k);
out:
    cvy_scene_free(&merged);
    return status;
}

const struct cvy_fault cvy_fault_talk = {.name = "communication-exposed", .mend = mend};
