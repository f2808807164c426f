/* footprint: does a plan fit the memory that each device may take? Stages are cut so that it does, where that can be
   done. When it does not, the plans of the other strategies for the same devices are made too, without allocating
   what they need, to say which of them would. */
#include "engine/plan.h"
#include "engine/world.h"

#include <stdio.h>
#include <string.h>

enum { MAX_NAMED = 4, MAX_WAYS = 6 }; /* devices and ways out that the error has room for */

static double mb(size_t n_bytes) { return (double)n_bytes / 1e6; }

static size_t bytes_of(const struct cvy_worker *w) { return cvy_worker_bytes(w, false); }

const struct cvy_worker *cvy_plan_largest(const struct cvy_plan *plan) {
    const struct cvy_worker *most = &plan->team.workers[0];
    for (int i = 1; i < plan->team.n; i++)
        if (bytes_of(&plan->team.workers[i]) > bytes_of(most))
            most = &plan->team.workers[i];
    return most;
}

size_t cvy_plan_bytes(const struct cvy_plan *plan) { return bytes_of(cvy_plan_largest(plan)); }

/* " (of cpu:0: weights 2.5, gradients 1.1, activations 227.1, workspace 9.2, other 0.1)" */
static void print_categories(const struct cvy_plan *plan, struct cvy_text *out) {
    const struct cvy_worker *most = cvy_plan_largest(plan);
    const struct cvy_needs n = cvy_worker_needs(most);
    cvy_text_printf(
        out, " (of %s: weights %.1f, gradients %.1f, activations %.1f, workspace %.1f, other %.1f)",
        most->device->name, mb(n.weights), mb(n.gradients), mb(n.activations), mb(n.workspace), mb(n.other));
}

/* "61.3 MB on each device", or "61.3 MB on cpu:0, 40.2 MB on cpu:1". */
static void print_needs(const struct cvy_plan *plan, struct cvy_text *out) {
    const struct cvy_worker *workers = plan->team.workers;
    bool is_same = true;
    for (int i = 1; i < plan->team.n; i++)
        is_same &= bytes_of(&workers[i]) == bytes_of(&workers[0]);
    if (is_same && plan->team.n > 1) {
        cvy_text_printf(out, "%.1f MB on each device", mb(cvy_plan_bytes(plan)));
        print_categories(plan, out);
        return;
    }
    for (int i = 0; i < plan->team.n && i < MAX_NAMED; i++)
        cvy_text_printf(out, "%s%.1f MB on %s", i ? ", " : "", mb(bytes_of(&workers[i])),
                        workers[i].device->name);
    if (plan->team.n > MAX_NAMED)
        cvy_text_printf(out, ", at most %.1f MB on any", mb(cvy_plan_bytes(plan)));
    print_categories(plan, out);
}

cvy_status cvy_plan_measure(struct cvy_plan *plan) {
    int64_t most = (int64_t)cvy_plan_bytes(plan), limit = plan->options.device_memory;
    if (limit)
        CVY_TRY(cvy_world_max(plan->options.world, &most, "memory of the devices"));
    plan->is_fitting = limit == 0 || most <= limit;
    return CVY_OK;
}

cvy_status cvy_plan_check_free(const struct cvy_plan *plan, double n_free) {
    struct cvy_text needs = {0};
    size_t all = 0;
    for (int i = 0; i < plan->team.n; i++)
        all += bytes_of(&plan->team.workers[i]);
    if (!plan->backend->is_host_memory || plan->options.device_memory || n_free <= 0 || (double)all <= n_free)
        return CVY_OK;
    print_needs(plan, &needs);
    cvy_status status = needs.status;
    if (status == CVY_OK)
        status =
            CVY_FAIL(CVY_ERR_MEMORY,
                     "strategy %s needs %s, %.1f MB in this process, and %.1f MB of memory is free: take a "
                     "smaller batch, more shards, or --device-memory %.0fM to try all the same",
                     plan->strategy->name, needs.data, mb(all), n_free / 1e6, mb(cvy_plan_bytes(plan)) + 1);
    cvy_text_free(&needs);
    return status;
}

/* ---- stages ---------------------------------------------------------------------------------------- */

struct cvy_stage_options cvy_plan_stage_options(const struct cvy_plan *plan) {
    return (struct cvy_stage_options){.backend = plan->backend, .conv_algo = plan->options.conv_algo};
}

/* How many slots and sums a stage has is the schedule's, and does not depend on where the cuts are. */
static cvy_status ask_schedule(const struct cvy_plan *plan, int32_t stage, int32_t *n_slots,
                               int32_t *n_sums) {
    int32_t bucket_stage[CVY_MAX_STAGES];
    struct cvy_strategy_input input = {.mesh = plan->mesh,
                                       .device = stage,
                                       .n_shards = (int32_t)plan->options.shards,
                                       .is_accumulating = plan->options.accumulate > 1,
                                       .n_buckets = plan->mesh.pipe,
                                       .bucket_stage = bucket_stage,
                                       .schedule = plan->options.schedule};
    struct cvy_program *program = NULL;
    for (int32_t b = 0; b < plan->mesh.pipe; b++)
        bucket_stage[b] = plan->mesh.pipe - 1 - b;
    CVY_TRY(CVY_ALLOC(program, 1));
    cvy_status status = plan->strategy->schedule(&input, program);
    *n_slots = program->n_slots;
    *n_sums = program->n_sums + input.is_accumulating;
    cvy_program_free(program);
    return status;
}

cvy_status cvy_plan_cut_stages(const struct cvy_plan *plan, const struct cvy_op *optimizer,
                               struct cvy_graph *g) {
    int32_t n_slots[CVY_MAX_STAGES], n_sums[CVY_MAX_STAGES];
    struct cvy_stage_options options = cvy_plan_stage_options(plan);
    if (plan->is_tight) {
        for (int32_t stage = 0; stage < plan->mesh.pipe; stage++)
            CVY_TRY(ask_schedule(plan, stage, &n_slots[stage], &n_sums[stage]));
        options.memory_limit = (size_t)plan->options.device_memory;
        options.n_copies = optimizer->n_in - 1; /* all of a group but the gradient */
        options.n_slots = n_slots;
        options.n_sums = n_sums;
    }
    return cvy_pass_stages(g, plan->mesh.pipe, &options);
}

/* ---- other plans ----------------------------------------------------------------------------------- */

/* Other strategies, found so far to fit, as flags. */
struct ways {
    const struct cvy_plan *plan; /* what does not fit */
    const cvy_plan_options *asked;
    struct cvy_text text;
    int n;
};

/* Makes the plan of a strategy, on a mesh or NULL, and notes it when it fits. */
static void try_plan(struct ways *ways, const struct cvy_strategy *strategy, const char *mesh) {
    cvy_plan_options options = *ways->asked;
    cvy_plan *plan = NULL;
    options.strategy = strategy->name;
    options.mesh = mesh;
    options.schedule = NULL; /* 1f1b, which never needs more than gpipe */
    options.log = (cvy_log_sink){0};
    if (ways->n == MAX_WAYS || cvy_plan_make(ways->plan->built, &options, &plan) != CVY_OK)
        return; /* what these devices or shards do not allow is no way out */
    if (plan->is_fitting) {
        cvy_text_printf(&ways->text, "%s--strategy %s", ways->n++ ? ", " : "", strategy->name);
        if (mesh)
            cvy_text_printf(&ways->text, " --mesh %s", mesh);
        if (ways->asked->schedule && strategy->has_schedules)
            cvy_text_printf(&ways->text, " --schedule 1f1b");
        cvy_text_printf(&ways->text, " (%.1f MB)", mb(cvy_plan_bytes(plan)));
    }
    cvy_plan_free(plan);
}

/* A strategy that takes no mesh, or every mesh of the devices that has replicas and stages both. */
static void try_strategy(struct ways *ways, const struct cvy_strategy *strategy) {
    int32_t n = ways->plan->n_devices;
    struct cvy_mesh mesh;
    if (strategy->mesh(n, NULL, &mesh) == CVY_OK) {
        try_plan(ways, strategy, NULL);
        return;
    }
    for (int32_t pipe = 2; pipe < n; pipe++) {
        char text[40];
        snprintf(text, sizeof text, "data=%d,pipe=%d", n / pipe, pipe);
        if (n % pipe == 0 && strategy->mesh(n, text, &mesh) == CVY_OK)
            try_plan(ways, strategy, text);
    }
}

cvy_status cvy_plan_check_memory(const struct cvy_plan *plan, const cvy_plan_options *asked) {
    struct ways ways = {.plan = plan, .asked = asked};
    struct cvy_text needs = {0};
    size_t n;
    const struct cvy_strategy *const *table = cvy_strategy_table(&n);
    if (plan->is_fitting)
        return CVY_OK;
    print_needs(plan, &needs);
    for (size_t i = 0; i < n; i++)
        try_strategy(&ways, table[i]);
    cvy_status status = needs.status ? needs.status : ways.text.status;
    if (status == CVY_OK)
        status = CVY_FAIL(CVY_ERR_USAGE, "strategy %s needs %s, and %.1f MB is the limit%s%s",
                          plan->strategy->name, needs.data, mb((size_t)asked->device_memory),
                          ways.n ? "; these fit: "
                                 : "; no other strategy fits: take more devices, more shards or a "
                                   "smaller batch",
                          ways.n ? ways.text.data : "");
    cvy_text_free(&needs);
    cvy_text_free(&ways.text);
    return status;
}
