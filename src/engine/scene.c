/* See scene.h. */
#include "engine/scene.h"

#include "engine/event_kind.h"

#include <stdlib.h>

static const double SEEN = 0.05; /* of a step: waiting for images that is worth a word */

static double at_least(double x, double least) { return x > least ? x : least; }
static double at_most(double x, double most) { return x < most ? x : most; }

/* ---- devices -------------------------------------------------------------------------------------------- */

bool cvy_scene_is_talk(const struct cvy_replay_instr *i) {
    return i->kind == CVY_I_REDUCE || cvy_kind_is_talk(cvy_kind_of_instr(i->kind, i->phase));
}

double cvy_scene_passes(const struct cvy_scene *scene, size_t device) {
    const struct cvy_replay_device *d = &scene->replay.devices.data[device];
    double us = 0;
    for (size_t k = 0; k < d->instrs.n; k++)
        us += d->instrs.data[k].kind == CVY_I_RUN ? d->instrs.data[k].own_us : 0;
    return us;
}

double cvy_scene_work(const struct cvy_scene *scene, size_t device) {
    const struct cvy_replay_device *d = &scene->replay.devices.data[device];
    double us = 0;
    for (size_t k = 0; k < d->instrs.n; k++)
        us += cvy_scene_is_talk(&d->instrs.data[k]) ? 0 : d->instrs.data[k].own_us;
    return us;
}

/* Each has one forward pass of the first part. */
int64_t cvy_scene_shards(const struct cvy_scene *scene, size_t device) {
    const struct cvy_replay_device *d = &scene->replay.devices.data[device];
    int32_t first = INT32_MAX;
    int64_t n = 0;
    for (size_t k = 0; k < d->instrs.n; k++) {
        const struct cvy_replay_instr *i = &d->instrs.data[k];
        if (i->kind != CVY_I_RUN || i->phase != CVY_PHASE_FORWARD || i->part > first)
            continue;
        n = i->part < first ? 1 : n + 1;
        first = i->part;
    }
    return n;
}

int64_t cvy_scene_replicas(const struct cvy_scene *scene, int32_t stage) {
    int64_t n = 0;
    for (size_t d = 0; d < scene->replay.devices.n; d++)
        n += scene->replay.devices.data[d].stage == stage;
    return n;
}

void cvy_scene_scale(struct cvy_scene *scene, size_t device, double factor, bool with_talk) {
    struct cvy_replay_device *d = &scene->replay.devices.data[device];
    for (size_t k = 0; k < d->instrs.n; k++) {
        if (with_talk || !cvy_scene_is_talk(&d->instrs.data[k]))
            d->instrs.data[k].own_us *= factor;
    }
}

int64_t cvy_scene_growth(const struct cvy_scene *scene, int64_t most) {
    const struct cvy_profile_file *file = scene->file;
    const int64_t update = file->batch_size * file->accumulate;
    int64_t k = 1;
    while (2 * k <= most && update > 0 && 2 * k * 4 * update <= file->images)
        k *= 2;
    return k;
}

/* ---- time ----------------------------------------------------------------------------------------------- */

cvy_status cvy_scene_simulate(const struct cvy_scene *scene, double *span_us, double *busiest_us) {
    struct cvy_replay_result result = {0};
    const cvy_status status = cvy_replay_run(&scene->replay, &result);
    *span_us = result.span_us;
    *busiest_us = 0;
    for (size_t d = 0; d < result.busy_us.n; d++)
        *busiest_us = at_least(result.busy_us.data[d], *busiest_us);
    cvy_replay_result_free(&result);
    return status;
}

/* Devices of the process that wrote the times: they share its cores with the threads that load. */
static double computing_cores(const struct cvy_profile_file *file) {
    int64_t n = 0;
    for (size_t d = 0; d < file->devices.n; d++)
        n += file->devices.data[d].process == file->devices.data[0].process;
    return (double)(n * file->threads);
}

/* Threads of their own load while devices compute; the caller's loads before. Nothing takes less than the time that all
   of it together needs on the cores that there are. */
static double wait_of(const struct cvy_scene *scene, double span_us) {
    const struct cvy_profile_file *file = scene->file;
    if (scene->load_us <= 0)
        return scene->wait_us * scene->batches;
    const double load = scene->load_us * scene->batches;
    if (scene->workers == 0)
        return load;
    const double all = load + scene->host_us + span_us * computing_cores(file),
                 least = at_least(load / (double)scene->workers,
                                  all / at_least((double)file->cores, computing_cores(file)));
    return at_least(least - scene->host_us - span_us, 0);
}

cvy_status cvy_scene_time(const struct cvy_scene *scene, double *out) {
    double simulated, busiest;
    CVY_TRY(cvy_scene_simulate(scene, &simulated, &busiest));
    simulated = busiest + (simulated - busiest) * scene->idle;
    const double span =
        scene->file->span_us * (scene->simulated_us > 0 ? simulated / scene->simulated_us : scene->batches);
    *out = (wait_of(scene, span) + scene->host_us + span) / scene->batches;
    return CVY_OK;
}

/* ---- scenes --------------------------------------------------------------------------------------------- */

/* While steps wait for images, threads that load them are busy all the time, as far as there are cores for them. */
static double loading_of(const struct cvy_profile_file *file, double host_us) {
    if (file->wait_us < SEEN * file->step_us)
        return 0;
    if (file->workers == 0)
        return file->wait_us;
    const double cores = at_least((double)file->cores, computing_cores(file));
    return at_least(at_most((double)file->workers * file->step_us,
                            cores * file->step_us - computing_cores(file) * file->span_us - host_us),
                    file->wait_us);
}

static cvy_status copy_devices(struct cvy_scene *out, const struct cvy_replay *replay, const double *cost) {
    for (size_t d = 0; d < replay->devices.n; d++)
        CVY_TRY(cvy_vec_push(&out->cost, cost ? cost[d] : out->file->devices.data[d].cost));
    return cvy_replay_copy(replay, &out->replay);
}

cvy_status cvy_scene_open(const struct cvy_profile_file *file, struct cvy_scene *out) {
    double busiest;
    *out = (struct cvy_scene){.file = file,
                              .host_us = at_least(file->step_us - file->wait_us - file->span_us, 0),
                              .wait_us = file->wait_us,
                              .workers = file->workers,
                              .idle = 1,
                              .batches = 1};
    out->load_us = loading_of(file, out->host_us);
    CVY_TRY(copy_devices(out, &file->replay, NULL));
    return cvy_scene_simulate(out, &out->simulated_us, &busiest);
}

cvy_status cvy_scene_copy(const struct cvy_scene *scene, struct cvy_scene *out) {
    *out = (struct cvy_scene){.file = scene->file,
                              .simulated_us = scene->simulated_us,
                              .host_us = scene->host_us,
                              .wait_us = scene->wait_us,
                              .load_us = scene->load_us,
                              .workers = scene->workers,
                              .idle = scene->idle,
                              .batches = scene->batches};
    return copy_devices(out, &scene->replay, scene->cost.data);
}

void cvy_scene_free(struct cvy_scene *scene) {
    cvy_replay_free(&scene->replay);
    cvy_vec_free(&scene->cost);
    *scene = (struct cvy_scene){0};
}
