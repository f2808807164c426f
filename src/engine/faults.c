/* See faults.h: the table, the order of gain, and the shares when nothing is wrong. */
#include "engine/faults.h"

#include <stdlib.h>
#include <string.h>

/* Of two that gain the same the first is named. */
static const struct cvy_fault *const faults[] = {
    &cvy_fault_input,  &cvy_fault_slow_device, &cvy_fault_shards,     &cvy_fault_stages,
    &cvy_fault_bubble, &cvy_fault_talk,        &cvy_fault_small_batch};
enum { N_FAULTS = sizeof faults / sizeof *faults };

static const double LEAST_GAIN = 1.1;

static cvy_status try_fault(const struct cvy_fault *fault, const struct cvy_scene *scene,
                            struct cvy_verdict *out) {
    struct cvy_scene mended = {0};
    double before, after;
    cvy_status status;
    *out = (struct cvy_verdict){.name = fault->name};
    CVY_TRY_OUT(cvy_scene_copy(scene, &mended));
    CVY_TRY_OUT(fault->mend(&mended, out));
    if (!out->advice[0])
        goto out;
    CVY_TRY_OUT(cvy_scene_time(scene, &before));
    CVY_TRY_OUT(cvy_scene_time(&mended, &after));
    out->gain = after > 0 ? before / after : 1;
out:
    cvy_scene_free(&mended);
    return status;
}

/* The fault not yet taken whose mending gains most; *best < 0: none gains enough. */
static cvy_status find_best(const struct cvy_scene *scene, const bool *is_taken, double *alone, int *best) {
    double most = LEAST_GAIN;
    *best = -1;
    for (int k = 0; k < N_FAULTS; k++) {
        struct cvy_verdict verdict;
        if (is_taken[k])
            continue;
        CVY_TRY(try_fault(faults[k], scene, &verdict));
        alone[k] = alone[k] > 0 ? alone[k] : verdict.gain > 0 ? verdict.gain : 1;
        if (verdict.gain >= most * (*best < 0 ? 1 : 1 + 1e-9)) {
            most = verdict.gain;
            *best = k;
        }
    }
    return CVY_OK;
}

static cvy_status find_all(struct cvy_scene *scene, struct cvy_verdicts *out) {
    bool is_taken[N_FAULTS] = {false};
    double alone[N_FAULTS] = {0};
    for (;;) {
        struct cvy_verdict verdict;
        int best;
        CVY_TRY(find_best(scene, is_taken, alone, &best));
        if (best < 0)
            return cvy_scene_time(scene, &out->mended_us);
        CVY_TRY(try_fault(faults[best], scene, &verdict));
        verdict.alone = alone[best];
        is_taken[best] = true;
        CVY_TRY(cvy_vec_push(&out->list, verdict));
        CVY_TRY(faults[best]->mend(scene, &verdict)); /* now for those that follow */
    }
}

static void add_shares(const struct cvy_scene *scene, struct cvy_verdicts *out) {
    const struct cvy_profile_file *file = scene->file;
    double all = 0, conv = 0, passes = 0;
    for (size_t d = 0; d < file->devices.n; d++) {
        for (size_t k = 0; k < file->devices.data[d].operators.n; k++) {
            const struct cvy_profile_operator *op = &file->devices.data[d].operators.data[k];
            all += op->us;
            conv += strncmp(op->name, "conv2d", 6) == 0 ? op->us : 0;
        }
        passes += cvy_scene_passes(scene, d) / (double)file->devices.n;
    }
    out->conv_share = all > 0 ? conv / all : 0;
    if (scene->simulated_us > 0 && file->step_us > 0)
        out->compute_share = passes / scene->simulated_us * file->span_us / file->step_us;
}

cvy_status cvy_find_faults(const struct cvy_profile_file *file, struct cvy_verdicts *out) {
    struct cvy_scene scene = {0};
    cvy_status status;
    CVY_TRY_OUT(cvy_scene_open(file, &scene));
    out->is_timed = !file->has_streams;
    add_shares(&scene, out);
    status = find_all(&scene, out);
out:
    cvy_scene_free(&scene);
    return status;
}
