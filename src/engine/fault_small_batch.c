/* small-batch overhead: what a step takes whatever the number of images: updating parameters, the host, and of each
   operator what a call takes at least. */
#include "engine/faults.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

static const double SHARE = 0.2, ENOUGH = 0.1; /* of a step: worth a word; after mending */
enum { MOST = 64, LINEAR_IMAGES = 32 };

/* A linear layer moves its weights, however few images a shard has: up to about 32 that takes longer than the
   arithmetic. */
static bool is_linear(const char *name) { return strncmp(name, "linear", 6) == 0; }

struct parts { /* of the passes of a device, us */
    double calls, linear, all;
};

/* Of its operators in the passes; a call takes at least as long as the cheapest kind's. */
static struct parts parts_of(const struct cvy_profile_device *device) {
    struct parts parts = {0, 0, 0};
    double least = DBL_MAX, n = 0;
    for (size_t k = 0; k < device->operators.n; k++) {
        const struct cvy_profile_operator *op = &device->operators.data[k];
        parts.all += op->us;
        n += is_linear(op->name) ? 0 : op->calls;
        parts.linear += is_linear(op->name) ? op->us : 0;
        if (op->calls > 0 && op->us / op->calls < least)
            least = op->us / op->calls;
    }
    parts.calls = n > 0 ? n * least : 0;
    return parts;
}

/* What k times the images multiply a device's passes by. */
static double factor_of(const struct cvy_scene *scene, size_t d, double k) {
    const struct cvy_profile_file *file = scene->file;
    const struct parts parts = parts_of(&file->devices.data[d]);
    const double images = (double)file->batch_size / (double)(file->shards > 0 ? file->shards : 1),
                 now = images > LINEAR_IMAGES ? images : LINEAR_IMAGES,
                 then = k * images > LINEAR_IMAGES ? k * images : LINEAR_IMAGES;
    if (parts.all <= 0)
        return k;
    const double rest = parts.all - parts.calls - parts.linear;
    return (parts.calls + parts.linear * then / now + k * rest) / parts.all;
}

static void grow_batch(struct cvy_scene *scene, double k) {
    for (size_t d = 0; d < scene->replay.devices.n; d++) {
        struct cvy_replay_device *device = &scene->replay.devices.data[d];
        const double factor = factor_of(scene, d, k);
        for (size_t i = 0; i < device->instrs.n; i++) {
            const enum cvy_instr_kind kind = device->instrs.data[i].kind;
            if (kind == CVY_I_RUN)
                device->instrs.data[i].own_us *= factor;
            else if (kind == CVY_I_LOAD || kind == CVY_I_SEND || kind == CVY_I_RECV)
                device->instrs.data[i].own_us *= k;
        }
    }
    scene->batches *= k;
}

/* The share of a step that does not grow with the batch, talk left aside. */
static cvy_status fixed_share(const struct cvy_scene *scene, double *out) {
    const size_t n = scene->replay.devices.n;
    double us = scene->host_us, time;
    CVY_TRY(cvy_scene_time(scene, &time));
    for (size_t d = 0; d < n; d++) {
        const double work = cvy_scene_work(scene, d), passes = cvy_scene_passes(scene, d);
        us += (work - passes + passes * (2 - factor_of(scene, d, 2))) / (double)n * scene->file->span_us /
              (scene->simulated_us > 0 ? scene->simulated_us : 1);
    }
    *out = time > 0 ? us / (time * scene->batches) : 0;
    return CVY_OK;
}

static cvy_status mend(struct cvy_scene *scene, struct cvy_verdict *out) {
    const struct cvy_profile_file *file = scene->file;
    double share, k;
    if (file->has_streams)
        return CVY_OK;
    CVY_TRY(fixed_share(scene, &share));
    if (share < SHARE)
        return CVY_OK;
    const double most = (double)cvy_scene_growth(scene, MOST);
    for (k = 1; k < most && share / (share + k * (1 - share)) > ENOUGH;)
        k *= 2;
    if (k == 1)
        return CVY_OK;
    snprintf(out->cause, sizeof out->cause,
             "%.0f %% of a step do not depend on the number of images: updates, the host, calls of "
             "operators; the batch "
             "has %lld",
             100 * share, (long long)file->batch_size);
    snprintf(out->flags, sizeof out->flags, "--batch-size %.0f", (double)file->batch_size * k);
    snprintf(out->advice, sizeof out->advice,
             "take %s and scale --lr (--lr-base does it), as far as accuracy allows: it is another training",
             out->flags);
    grow_batch(scene, k);
    return CVY_OK;
}

const struct cvy_fault cvy_fault_small_batch = {.name = "small-batch overhead", .mend = mend};
