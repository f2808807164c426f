/* imbalanced stages, pipeline bubble: what keeps the stages of a model from working all the time. The busiest stage
   sets the pace; while the first shards come and the last ones leave, the others wait even if all are as busy. */
#include "engine/faults.h"

#include <stdio.h>
#include <string.h>

static const double EVEN = 1.2;   /* the busiest stage over the mean, as far as it is no fault */
static const double BUBBLE = 0.1; /* of a step, likewise */

static double mean_of(const struct cvy_scene *scene, bool is_cost, double *most) {
    const size_t n = scene->replay.devices.n;
    double sum = 0;
    *most = 0;
    for (size_t d = 0; d < n; d++) {
        const double x = is_cost ? scene->cost.data[d] : cvy_scene_work(scene, d);
        sum += x;
        *most = x > *most ? x : *most;
    }
    return sum / (double)n;
}

/* ---- imbalanced stages ---------------------------------------------------------------------------------- */

/* Gives every stage the mean. By the estimate, if that is uneven: a device may be slow as well. */
static void even_out(struct cvy_scene *scene, bool is_cost, double mean) {
    for (size_t d = 0; d < scene->replay.devices.n; d++) {
        const double x = is_cost ? scene->cost.data[d] : cvy_scene_work(scene, d);
        if (x <= 0)
            continue;
        cvy_scene_scale(scene, d, mean / x, false);
        if (is_cost)
            scene->cost.data[d] = mean;
    }
}

static cvy_status mend_stages(struct cvy_scene *scene, struct cvy_verdict *out) {
    const struct cvy_profile_file *file = scene->file;
    double most_cost, most;
    if (file->has_streams || file->replay.n_stages < 2)
        return CVY_OK;
    const double mean_cost = mean_of(scene, true, &most_cost), mean = mean_of(scene, false, &most);
    const bool is_cost = most_cost > EVEN * mean_cost;
    if (mean <= 0 || most <= EVEN * mean)
        return CVY_OK;
    snprintf(out->cause, sizeof out->cause,
             "the busiest of %d stages computes %.2f times as long as the mean of them%s",
             file->replay.n_stages, most / mean, is_cost ? ", as the cut of the model lets expect" : "");
    if (file->device_memory > 0) {
        snprintf(out->flags, sizeof out->flags, "--device-memory 0");
        snprintf(out->advice, sizeof out->advice,
                 "--device-memory forces this cut: raise it, or leave it out; results are the same");
    } else {
        snprintf(out->flags, sizeof out->flags, "--strategy ddp --shards %lld", (long long)file->shards);
        snprintf(out->advice, sizeof out->advice,
                 "take %s if the whole model fits on a device, or fewer stages with --strategy hybrid "
                 "--mesh: results "
                 "are the same; a model that says its stages itself (cvy_stage) must be cut elsewhere",
                 out->flags);
    }
    even_out(scene, is_cost, is_cost ? mean_cost : mean);
    return CVY_OK;
}

const struct cvy_fault cvy_fault_stages = {.name = "imbalanced stages", .mend = mend_stages};

/* ---- pipeline bubble ------------------------------------------------------------------------------------ */

/* With m shards for each of P stages the bubble is (P - 1) / m of the time that the busiest stage works. */
static cvy_status mend_bubble(struct cvy_scene *scene, struct cvy_verdict *out) {
    const struct cvy_profile_file *file = scene->file;
    const bool is_serial = strcmp(file->strategy, "mp") == 0;
    double span, busiest;
    if (file->has_streams || file->replay.n_stages < 2)
        return CVY_OK;
    const int64_t n_stages = file->replay.n_stages, n_replicas = (int64_t)file->devices.n / n_stages,
                  most = file->batch_size / n_replicas, now = file->shards / n_replicas;
    int64_t shards = 4 * n_stages > 2 * now ? 4 * n_stages : 2 * now;
    shards = shards > most ? most : shards;
    shards = shards < now ? now : shards;
    CVY_TRY(cvy_scene_simulate(scene, &span, &busiest));
    const double wasted = (span - busiest) * scene->idle;
    if (wasted < BUBBLE * span || (shards <= now && !is_serial) || now < 1)
        return CVY_OK;
    snprintf(
        out->cause, sizeof out->cause,
        "the busiest stage waits %.0f %% of a step for the others: %lld stages, %lld shard%s to follow each "
        "other through them%s",
        100 * wasted / span, (long long)n_stages, (long long)now, now == 1 ? "" : "s",
        is_serial ? ", and --strategy mp lets one stage work at a time" : "");
    snprintf(out->flags, sizeof out->flags, "%s--shards %lld", is_serial ? "--strategy pipeline " : "",
             (long long)(shards * n_replicas));
    snprintf(out->advice, sizeof out->advice,
             "take %s: more, smaller shards keep the stages busy; another S is another run, with other bits",
             out->flags);
    const double left = busiest * (double)(n_stages - 1) / (double)shards;
    const double by_count = (span - busiest) * scene->idle * (double)now / (double)shards;
    if (span > busiest)
        scene->idle = (is_serial ? left : by_count) / (span - busiest);
    return CVY_OK;
}

const struct cvy_fault cvy_fault_bubble = {.name = "pipeline bubble", .mend = mend_bubble};
