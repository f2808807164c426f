/* input-bound: steps wait for their images. More threads mend it where cores are idle; else images must be made cheaper
   to load. */
#include "engine/faults.h"

#include <math.h>
#include <stdio.h>

/* Threads that load as fast as devices compute, as many as there are cores for. */
static int64_t enough_workers(const struct cvy_scene *scene) {
    const struct cvy_profile_file *file = scene->file;
    int64_t n_devices = 0;
    for (size_t d = 0; d < file->devices.n; d++)
        n_devices += file->devices.data[d].process == file->devices.data[0].process;
    const int64_t idle = file->cores - n_devices * file->threads, most = idle > 1 ? idle : 1;
    const double wanted = ceil(scene->load_us / (scene->host_us + file->span_us + 1e-9) + 0.15);
    return wanted < (double)most ? (int64_t)wanted : most;
}

static cvy_status mend(struct cvy_scene *scene, struct cvy_verdict *out) {
    const struct cvy_profile_file *file = scene->file;
    const int64_t workers = enough_workers(scene);
    if (scene->load_us <= 0)
        return CVY_OK;
    snprintf(out->cause, sizeof out->cause,
             "a step waits %.2f of %.2f ms for its images: %lld thread%s of their own load them (--workers "
             "%lld), devices with %lld thread%s each compute, cores: %lld",
             file->wait_us / 1e3, file->step_us / 1e3, (long long)file->workers,
             file->workers == 1 ? "" : "s", (long long)file->workers, (long long)file->threads,
             file->threads == 1 ? "" : "s", (long long)file->cores);
    if (workers > scene->workers) {
        snprintf(out->flags, sizeof out->flags, "--workers %lld", (long long)workers);
        snprintf(out->advice, sizeof out->advice, "take %s: the results are the same", out->flags);
        scene->workers = workers;
        return CVY_OK;
    }
    snprintf(
        out->advice, sizeof out->advice,
        "no core is idle for more --workers: make images cheaper to load, with convoy data pack --max-side, "
        "or less augmentation, or give the devices fewer threads");
    out->is_at_best = true;
    scene->load_us = scene->wait_us = 0;
    return CVY_OK;
}

const struct cvy_fault cvy_fault_input = {.name = "input-bound", .mend = mend};
