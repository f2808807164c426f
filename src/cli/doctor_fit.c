/* doctor --model: does training fit, with each strategy on these devices? Plans are made as train makes them, but
   nothing that they need is allocated. */
#include "cli/doctor.h"

#include "engine/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fit {
    struct doctor *d;
    struct cvy_task_options options; /* without strategy and limit */
    int64_t limit;                   /* bytes a device may take; 0: not known */
    int n_devices;                   /* 0: no plan was made yet */
    int n_fitting;
    json_t *list; /* NULL: as text */
};

/* ---- one plan ------------------------------------------------------------------------------------------ */

static double mb(size_t n_bytes) { return (double)n_bytes / 1e6; }

static void print_plan(const struct fit *fit, const struct cvy_plan *plan, const char *name,
                       bool is_fitting) {
    const struct cvy_needs n = cvy_worker_needs(cvy_plan_largest(plan));
    printf("%-24s %9.1f %10.1f %12.1f %10.1f %7.1f %9.1f  %s\n", name, mb(n.weights), mb(n.gradients),
           mb(n.activations), mb(n.workspace), mb(n.other), mb(n.all),
           fit->limit == 0 ? "?"
           : is_fitting    ? "yes"
                           : "no");
    for (int i = 0; plan->mesh.pipe > 1 && i < plan->team.n; i++)
        printf("  %-64s %11s %9.1f\n", plan->team.workers[i].device->name, "",
               mb(cvy_worker_bytes(&plan->team.workers[i], false)));
}

static void add_plan(const struct fit *fit, const struct cvy_plan *plan, const char *name, bool is_fitting) {
    json_t *devices = json_array();
    for (int i = 0; i < plan->team.n; i++) {
        const struct cvy_worker *w = &plan->team.workers[i];
        const struct cvy_needs n = cvy_worker_needs(w);
        json_array_append_new(
            devices, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "device", w->device->name, "weights",
                               (json_int_t)n.weights, "gradients", (json_int_t)n.gradients, "activations",
                               (json_int_t)n.activations, "workspace", (json_int_t)n.workspace, "other",
                               (json_int_t)n.other, "all", (json_int_t)n.all));
    }
    json_array_append_new(fit->list, json_pack("{s:s, s:b, s:o}", "strategy", name, "fits", (int)is_fitting,
                                               "devices", devices));
}

/* What one CPU device may take when nothing else was said: its part of what is free. */
static void find_limit(struct fit *fit, const struct cvy_plan *plan) {
    fit->n_devices = plan->n_devices;
    if (fit->limit == 0 && plan->backend->is_host_memory)
        fit->limit = (int64_t)(fit->d->memory / plan->team.n);
}

static cvy_status open_plan(const struct fit *fit, const char *strategy, const char *mesh, int64_t limit,
                            struct cvy_task *task) {
    struct cvy_task_options options = fit->options;
    options.plan.strategy = strategy;
    options.plan.mesh = mesh;
    options.plan.device_memory = limit;
    return cvy_task_open(task, &options, NULL);
}

/* As it is cut for speed; if that is too large, stages are cut to fit. */
static void try_plan(struct fit *fit, const char *strategy, const char *mesh) {
    struct cvy_task task = {.plan = NULL}, tight = {.plan = NULL};
    char name[64];
    snprintf(name, sizeof name, "%s%s%s", strategy, mesh ? " " : "", mesh ? mesh : "");
    if (open_plan(fit, strategy, mesh, 0, &task) != CVY_OK) {
        if (fit->list)
            json_array_append_new(
                fit->list, json_pack("{s:s, s:b, s:s}", "strategy", name, "fits", 0, "refused", cvy_error()));
        else
            printf("%-24s not here: %s\n", name, cvy_error());
        cvy_task_free(&task);
        return;
    }
    find_limit(fit, task.plan);
    const struct cvy_plan *plan = task.plan;
    bool is_fitting = fit->limit == 0 || (int64_t)cvy_plan_bytes(plan) <= fit->limit;
    if (!is_fitting && plan->mesh.pipe > 1 && open_plan(fit, strategy, mesh, fit->limit, &tight) == CVY_OK) {
        plan = tight.plan;
        is_fitting = true;
    }
    fit->n_fitting += is_fitting;
    if (fit->list)
        add_plan(fit, plan, name, is_fitting);
    else
        print_plan(fit, plan, name, is_fitting);
    cvy_task_free(&tight);
    cvy_task_free(&task);
}

/* ---- all of them --------------------------------------------------------------------------------------- */

/* Of hybrid every mesh that has replicas and stages both. */
static void try_meshes(struct fit *fit) {
    char mesh[40];
    for (int pipe = 2; pipe < fit->n_devices; pipe++) {
        snprintf(mesh, sizeof mesh, "data=%d,pipe=%d", fit->n_devices / pipe, pipe);
        if (fit->n_devices % pipe == 0)
            try_plan(fit, "hybrid", mesh);
    }
}

static void try_all(struct fit *fit) {
    const struct options *o = fit->d->options;
    size_t n;
    const struct cvy_strategy *const *table = cvy_strategy_table(&n);
    if (o->strategy) {
        try_plan(fit, o->strategy, o->mesh);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(table[i]->name, "hybrid"))
            try_meshes(fit);
        else
            try_plan(fit, table[i]->name, NULL);
    }
}

static cvy_status judge(const struct fit *fit) {
    char limit[DOCTOR_BYTES];
    if (fit->n_fitting > 0)
        return CVY_OK;
    return CVY_FAIL(
        CVY_ERR_UNFIT,
        "%s with batches of %lld does not fit %s a device: take more devices, more shards or a smaller "
        "batch",
        fit->options.model, (long long)fit->options.loader.batch_size,
        doctor_bytes(limit, (double)fit->limit));
}

cvy_status doctor_fit(struct flag_values *values, struct doctor *d, const cvy_log_sink *log) {
    const struct options *o = d->options;
    char text[DOCTOR_BYTES];
    struct fit fit = {.d = d, .limit = o->device_memory};
    d->check = doctor_check_memory.name;
    doctor_check_memory.run(d);
    CVY_TRY(options_task(values, CVY_TASK_TRAIN, log, &fit.options));
    fit.options.is_plan_only = true;
    fit.options.plan.log = (cvy_log_sink){0}; /* what plans warn of, they all would */
    fit.list = o->json == 1 ? json_array() : NULL;
    if (!fit.list)
        printf("%-24s %9s %10s %12s %10s %7s %9s  %s\n", "MB, of the largest device", "weights", "gradients",
               "activations", "workspace", "other", "all", "fits");
    try_all(&fit);
    cvy_status status = CVY_OK;
    if (fit.list)
        status =
            command_print_json(json_pack("{s:I, s:o}", "limit", (json_int_t)fit.limit, "plans", fit.list));
    else if (fit.limit > 0)
        printf("limit: %s a device (%s)\n", doctor_bytes(text, (double)fit.limit),
               o->device_memory ? "--device-memory" : "its part of the memory that is free");
    else
        printf("limit: not known; --device-memory says it\n");
    return status == CVY_OK ? judge(&fit) : status;
}
