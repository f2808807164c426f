/* See largest_batch.h. A device's memory grows with the batch, so the boundary is found by doubling, then by halving
   the interval. Processes see the same plans and the same limit, and take the same turns. */
#include "engine/largest_batch.h"

#include "base/cgroup.h"
#include "data/data.h"
#include "engine/plan.h"
#include "engine/world.h"

static const double SHARE = 0.8; /* of what is free */

struct search {
    struct cvy_task *task; /* the graph is its plan's; memory depends on the options alone */
    struct cvy_largest_batch *out;
};

/* Batches of an epoch are of two sizes: the full one and what is left. */
static cvy_status announce(const struct search *s, cvy_plan *plan, int64_t batch) {
    const struct cvy_dataset *data[2] = {s->task->train, s->task->val};
    for (int i = 0; i < 2; i++) {
        bool is_training = i == 0;
        if (data[i] && data[i]->n >= batch)
            CVY_TRY(cvy_plan_announce(plan, batch, is_training));
        if (data[i] && data[i]->n % batch)
            CVY_TRY(cvy_plan_announce(plan, data[i]->n % batch, is_training));
    }
    return CVY_OK;
}

/* Of the device that takes the most, of all processes. Stages are cut to fit, where the limit was given: so will they
   be in training. */
static cvy_status bytes_of(const struct search *s, int64_t batch, bool is_whole, int64_t *bytes) {
    cvy_plan_options options = s->task->options.plan;
    cvy_plan *plan = NULL;
    options.batch_size = batch;
    options.log = (cvy_log_sink){0};
    CVY_TRY(cvy_plan_make(s->task->plan->built, &options, &plan));
    cvy_status status = is_whole ? announce(s, plan, batch) : CVY_OK;
    status = cvy_world_meet_failure(options.world, status, "sizes of batches");
    *bytes = (int64_t)cvy_plan_bytes(plan);
    s->out->shards = plan->options.shards;
    cvy_plan_free(plan);
    return status == CVY_OK ? cvy_world_max(options.world, bytes, "memory of the devices") : status;
}

static cvy_status find_limit(const struct search *s) {
    const struct cvy_plan *plan = s->task->plan;
    cvy_world *world = plan->options.world;
    int64_t n_local = plan->team.n * (world && world->core_size > 0 ? world->core_size : 1);
    int64_t taken = -(int64_t)(SHARE * cvy_memory_free("") / (double)n_local);
    s->out->limit = plan->options.device_memory;
    s->out->is_given = s->out->limit > 0;
    if (s->out->is_given)
        return CVY_OK;
    CVY_TRY(cvy_world_max(world, &taken, "memory that is free")); /* the least of all: of negative numbers */
    s->out->limit = -taken;
    if (plan->backend->is_host_memory && s->out->limit > 0)
        return CVY_OK;
    return CVY_FAIL(CVY_ERR_USAGE, "how much memory %s has is not known: give --device-memory",
                    plan->team.workers[0].device->name);
}

/* The largest k, 1 to `most`, for which k * unit images fit; 0: none. */
static cvy_status search(const struct search *s, int64_t unit, int64_t most, int64_t *found) {
    int64_t good = 0, bad = most + 1, bytes;
    for (int64_t k = 1; good + 1 < bad; k = bad <= most   ? good + (bad - good) / 2
                                            : 2 * k < bad ? 2 * k
                                                          : most) {
        CVY_TRY(bytes_of(s, k * unit, false, &bytes));
        if (bytes <= s->out->limit) {
            good = k;
            s->out->bytes = bytes;
        } else {
            bad = k;
            s->out->more = bytes;
        }
    }
    *found = good;
    return CVY_OK;
}

/* A smaller batch, left at the end of an epoch, may take a little more in some space: then one step down, and again. */
static cvy_status step_down(const struct search *s, int64_t unit, int64_t *k) {
    int64_t bytes = 0;
    for (; *k > 0; --*k) {
        CVY_TRY(bytes_of(s, *k * unit, true, &bytes));
        if (bytes <= s->out->limit)
            break;
        s->out->more = bytes;
    }
    s->out->bytes = bytes;
    return CVY_OK;
}

static cvy_status find(const struct search *s, int64_t most) {
    struct cvy_largest_batch *out = s->out;
    int64_t n = s->task->train ? s->task->train->n : most, k;
    most = n < most ? n : most;
    CVY_TRY(find_limit(s));
    CVY_TRY(bytes_of(s, most, true, &out->bytes)); /* S, with as many images as there can be */
    out->batch = most;
    if (out->bytes <= out->limit)
        return CVY_OK;
    int64_t unit = out->shards < most ? out->shards : most;
    out->more = out->bytes;
    CVY_TRY(search(s, unit, most / unit, &k));
    CVY_TRY(step_down(s, unit, &k));
    out->shards = unit;
    out->batch = k * unit;
    if (k > 0)
        return CVY_OK;
    return CVY_FAIL(
        CVY_ERR_USAGE,
        "not even a batch of %lld image%s, one a shard, fits: it needs %.1f MB on a device, and %.1f MB is "
        "the limit; take more devices, or --strategy pipeline",
        (long long)unit, unit == 1 ? "" : "s", (double)out->more / 1e6, (double)out->limit / 1e6);
}

cvy_status cvy_task_largest_batch(const struct cvy_task_options *options, int64_t most,
                                  struct cvy_largest_batch *out) {
    struct cvy_task_options asked = *options;
    struct cvy_task task = {.plan = NULL};
    struct search s = {&task, out};
    *out = (struct cvy_largest_batch){0};
    asked.is_plan_only = true;
    asked.is_any_batch = true;
    asked.loader.batch_size = 1024; /* with more images than there can be shards of a rule */
    asked.plan.device_memory = 0;   /* whether that fits is found out here */
    cvy_status status = cvy_task_open(&task, &asked, NULL);
    if (status == CVY_OK) {
        task.options.plan.device_memory = task.plan->options.device_memory = options->plan.device_memory;
        status = find(&s, most);
    }
    cvy_task_free(&task);
    return status;
}
