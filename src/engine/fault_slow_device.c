/* slow device: one takes longer for a shard than others for the like. */
#include "engine/faults.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

/* Replicas compute the same. Of different stages only an estimate says how their work compares. */
static const double SLOW_REPLICA = 1.3, SLOW_STAGE = 2;

/* us for a shard, over the device's share of the network. */
static double rate_of(const struct cvy_scene *scene, size_t d) {
    const int64_t n = cvy_scene_shards(scene, d);
    const double cost = scene->cost.data[d];
    return n > 0 && cost > 0 ? cvy_scene_passes(scene, d) / ((double)n * cost) : 0;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of those that device d is held against; the lower one of an even number. */
static double others_rate(const struct cvy_scene *scene, size_t d, const double *rates, double *room) {
    const struct cvy_replay_device *devices = scene->replay.devices.data;
    const bool has_replicas = cvy_scene_replicas(scene, devices[d].stage) > 1;
    size_t n = 0;
    for (size_t k = 0; k < scene->replay.devices.n; k++) {
        if (k != d && rates[k] > 0 && (!has_replicas || devices[k].stage == devices[d].stage))
            room[n++] = rates[k];
    }
    if (n == 0)
        return rates[d];
    qsort(room, n, sizeof *room, by_size);
    return room[(n - 1) / 2];
}

/* How much slower each device is than the others; *worst: the slowest, *n_slow: of those that are too slow. */
static cvy_status compare(const struct cvy_scene *scene, double *ratio, size_t *worst, int *n_slow) {
    const size_t n = scene->replay.devices.n;
    double *rates = NULL, *room = NULL, most = 0;
    cvy_status status;
    *n_slow = 0;
    CVY_TRY_OUT(CVY_ALLOC(rates, n));
    CVY_TRY_OUT(CVY_ALLOC(room, n));
    for (size_t d = 0; d < n; d++)
        rates[d] = rate_of(scene, d);
    for (size_t d = 0; d < n; d++) {
        const double others = others_rate(scene, d, rates, room);
        const bool has_replicas = cvy_scene_replicas(scene, scene->replay.devices.data[d].stage) > 1;
        ratio[d] = others > 0 ? rates[d] / others : 1;
        if (ratio[d] < (has_replicas ? SLOW_REPLICA : SLOW_STAGE))
            ratio[d] = 1;
        *n_slow += ratio[d] > 1;
        if (ratio[d] > most) {
            most = ratio[d];
            *worst = d;
        }
    }
out:
    free(rates);
    free(room);
    return status;
}

cvy_status cvy_find_slow_device(const struct cvy_scene *scene, bool *is_there) {
    double *ratio = NULL;
    size_t worst = 0;
    int n_slow = 0;
    cvy_status status;
    CVY_TRY_OUT(CVY_ALLOC(ratio, scene->replay.devices.n));
    status = compare(scene, ratio, &worst, &n_slow);
out:
    free(ratio);
    *is_there = n_slow > 0;
    return status;
}

static void name_device(const struct cvy_profile_file *file, size_t d, char *out, size_t n_bytes) {
    if (file->processes > 1)
        snprintf(out, n_bytes, "%s of rank %lld", file->devices.data[d].name,
                 (long long)file->devices.data[d].process);
    else
        snprintf(out, n_bytes, "%s", file->devices.data[d].name);
}

static void mend_device(struct cvy_scene *scene, size_t d, double ratio) {
    cvy_scene_scale(scene, d, 1 / ratio, true);
}

/* The others take over the shards of device `slow`; what is done for each shard takes longer then. */
static void leave_out(struct cvy_scene *scene, size_t slow) {
    const size_t n = scene->replay.devices.n;
    double theirs = 0;
    for (size_t d = 0; d < n; d++)
        theirs += d == slow ? 0 : (double)cvy_scene_shards(scene, d);
    const double more = (theirs + (double)cvy_scene_shards(scene, slow)) / theirs;
    for (size_t d = 0; d < n; d++) {
        struct cvy_replay_device *device = &scene->replay.devices.data[d];
        for (size_t k = 0; k < device->instrs.n; k++) {
            struct cvy_replay_instr *i = &device->instrs.data[k];
            const bool is_of_shard = i->kind == CVY_I_RUN || i->kind == CVY_I_LOAD || i->kind == CVY_I_ADD;
            if (d == slow || (n == 2 && cvy_scene_is_talk(i)))
                i->own_us = 0;
            else if (is_of_shard)
                i->own_us *= more;
        }
    }
}

/* --devices with all but one. */
static void list_others(const struct cvy_profile_file *file, size_t slow, char *out, size_t n_bytes) {
    size_t n = 0;
    for (size_t d = 0; d < file->devices.n && n < n_bytes; d++) {
        if (d != slow)
            n += (size_t)snprintf(out + n, n_bytes - n, "%s%s", n ? "," : "--devices ",
                                  file->devices.data[d].name);
    }
    if (n >= n_bytes)
        out[0] = 0;
}

/* What training gains without it. */
static cvy_status gain_without(const struct cvy_scene *scene, size_t slow, double *gain) {
    const struct cvy_profile_file *file = scene->file;
    struct cvy_scene without = {0};
    double before, after;
    cvy_status status = CVY_OK;
    *gain = 1;
    if (file->processes > 1 || file->replay.n_stages > 1 || file->devices.n < 2)
        return CVY_OK;
    CVY_TRY_OUT(cvy_scene_copy(scene, &without));
    leave_out(&without, slow);
    CVY_TRY_OUT(cvy_scene_time(scene, &before));
    CVY_TRY_OUT(cvy_scene_time(&without, &after));
    *gain = after > 0 ? before / after : 1;
out:
    cvy_scene_free(&without);
    return status;
}

static cvy_status gain_if_mended(const struct cvy_scene *scene, const double *ratio, double *gain) {
    struct cvy_scene mended = {0};
    double before, after;
    cvy_status status;
    CVY_TRY_OUT(cvy_scene_copy(scene, &mended));
    for (size_t d = 0; d < mended.replay.devices.n; d++)
        mend_device(&mended, d, ratio[d]);
    CVY_TRY_OUT(cvy_scene_time(scene, &before));
    CVY_TRY_OUT(cvy_scene_time(&mended, &after));
    *gain = after > 0 ? before / after : 1;
out:
    cvy_scene_free(&mended);
    return status;
}

static cvy_status mend_worst(struct cvy_scene *scene, const double *ratio, size_t worst, int n_slow,
                             struct cvy_verdict *out) {
    char name[64];
    double as_the_others, without;
    name_device(scene->file, worst, name, sizeof name);
    CVY_TRY(gain_if_mended(scene, ratio, &as_the_others));
    CVY_TRY(gain_without(scene, worst, &without));
    snprintf(out->cause, sizeof out->cause, "%s takes %.2f times as long as others for the like%s", name,
             ratio[worst], n_slow > 1 ? "; it is not the only one" : "");
    if (n_slow == 1 && without >= 1.1) {
        list_others(scene->file, worst, out->flags, sizeof out->flags);
        snprintf(out->advice, sizeof out->advice,
                 "leave it out, with %s; or find out what else runs there, or throttles it: as fast as the "
                 "others it "
                 "would gain %.2fx",
                 out->flags, as_the_others);
        leave_out(scene, worst);
        return CVY_OK;
    }
    snprintf(
        out->advice, sizeof out->advice,
        "find out what else runs there (top), or throttles it, or take another in its place with --devices");
    for (size_t d = 0; d < scene->replay.devices.n; d++)
        mend_device(scene, d, ratio[d]);
    return CVY_OK;
}

static cvy_status mend(struct cvy_scene *scene, struct cvy_verdict *out) {
    double *ratio = NULL;
    size_t worst = 0;
    int n_slow;
    cvy_status status;
    if (scene->file->has_streams)
        return CVY_OK;
    CVY_TRY_OUT(CVY_ALLOC(ratio, scene->replay.devices.n));
    CVY_TRY_OUT(compare(scene, ratio, &worst, &n_slow));
    if (n_slow > 0)
        status = mend_worst(scene, ratio, worst, n_slow, out);
out:
    free(ratio);
    return status;
}

const struct cvy_fault cvy_fault_slow_device = {.name = "slow device", .mend = mend};
