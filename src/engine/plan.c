/* Plans: options are checked, graphs made, devices opened, programs compiled. */
#include "engine/plan.h"

#include "engine/devices.h"
#include "engine/world.h"
#include "ops/conv_algo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- options --------------------------------------------------------------------------------------- */

enum { MAX_THREADS = 4096 }; /* of a device: far more than any machine has cores */

static cvy_status copy_text(struct cvy_plan *plan, const char **text) {
    char *copy = NULL;
    if (!*text)
        return CVY_OK;
    CVY_TRY(cvy_pool_strdup(&plan->pool, *text, &copy));
    *text = copy;
    return CVY_OK;
}

static cvy_status copy_options(struct cvy_plan *plan, const cvy_plan_options *options) {
    cvy_plan_options *o = &plan->options;
    *o = *options;
    CVY_TRY(copy_text(plan, &o->devices));
    CVY_TRY(copy_text(plan, &o->strategy));
    CVY_TRY(copy_text(plan, &o->mesh));
    CVY_TRY(copy_text(plan, &o->schedule));
    CVY_TRY(copy_text(plan, &o->backend));
    CVY_TRY(copy_text(plan, &o->conv_algo));
    CVY_TRY(copy_text(plan, &o->amp));
    CVY_TRY(copy_text(plan, &o->freeze));
    CVY_TRY(copy_text(plan, &o->optimizer));
    CVY_TRY(copy_text(plan, &o->optimizer_attributes));
    o->bucket_mb = o->bucket_mb > 0 ? o->bucket_mb : 25;
    o->first_bucket_mb = o->first_bucket_mb > 0 ? o->first_bucket_mb : 1;
    o->timeout_s = o->timeout_s > 0 ? o->timeout_s : 30;
    o->conv_algo = o->conv_algo ? o->conv_algo : "auto";
    CVY_TRY(cvy_conv_algo_check(o->conv_algo));
    if (o->batch_size < 1 || o->batch_size > INT32_MAX)
        return CVY_FAIL(CVY_ERR_USAGE, "batch size %lld: take 1 to %d", (long long)o->batch_size, INT32_MAX);
    if (o->accumulate < 0 || o->accumulate > INT32_MAX)
        return CVY_FAIL(CVY_ERR_USAGE, "%lld batches of one update: take 1 to %d", (long long)o->accumulate,
                        INT32_MAX);
    o->accumulate = o->accumulate ? o->accumulate : 1;
    if (!isfinite(o->clip_grad_norm) || o->clip_grad_norm < 0)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "a norm of gradients of at most %g: take more than 0, or 0 for any norm",
                        o->clip_grad_norm);
    if (o->shards < 0 || o->shards > 1 << 20)
        return CVY_FAIL(CVY_ERR_USAGE, "%lld shards: take 1 or more, or 0 for one per device",
                        (long long)o->shards);
    if (o->device_memory < 0)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "%lld bytes of memory per device: take more than that, or 0 for no limit",
                        (long long)o->device_memory);
    if (o->threads_per_device < 0 || o->threads_per_device > MAX_THREADS)
        return CVY_FAIL(CVY_ERR_USAGE, "%d threads per device: take 1 to %d, or 0 for all of its cores",
                        o->threads_per_device, MAX_THREADS);
    return CVY_OK;
}

static cvy_status choose_schedule(struct cvy_plan *plan) {
    cvy_plan_options *o = &plan->options;
    if (o->schedule && strcmp(o->schedule, "1f1b") && strcmp(o->schedule, "gpipe"))
        return CVY_FAIL(CVY_ERR_USAGE, "schedule '%s': take gpipe or 1f1b", o->schedule);
    if (o->schedule && !plan->strategy->has_schedules)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "strategy %s has no schedule to choose; --schedule %s goes with --strategy pipeline and hybrid",
            plan->strategy->name, o->schedule);
    o->schedule = o->schedule ? o->schedule : "1f1b";
    return CVY_OK;
}

static cvy_status choose_strategy(struct cvy_plan *plan) {
    cvy_plan_options *o = &plan->options;
    const char *names[32];
    size_t n;
    const struct cvy_strategy *const *table = cvy_strategy_table(&n);
    for (size_t i = 0; i < n && i < 32; i++)
        names[i] = table[i]->name;
    if (!o->strategy)
        o->strategy = plan->n_asked > 1 ? "ddp" : "single";
    plan->strategy = cvy_strategy_find(o->strategy);
    if (!plan->strategy) {
        char suggestion[CVY_SUGGESTION];
        return CVY_FAIL(CVY_ERR_USAGE, "no strategy '%s'%s; `convoy train --help` lists them", o->strategy,
                        cvy_suggest(suggestion, o->strategy, names, n));
    }
    if (plan->strategy->is_one_process && cvy_world_size(o->world) > 1)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "strategy %s keeps the parameters on a device of one process, and this run has %d "
                        "processes: take --strategy ddp, or give one process all devices",
                        plan->strategy->name, cvy_world_size(o->world));
    CVY_TRY(choose_schedule(plan));
    if (o->sync_bn && !plan->strategy->is_in_layers)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "strategy %s cannot normalise over all shards (--sync-bn): they pass through its stages one "
            "after "
            "another, and each would wait for the last; take --strategy %s, or leave --sync-bn out",
            plan->strategy->name, plan->n_devices > 1 ? "ddp" : "single");
    CVY_TRY(plan->strategy->mesh(plan->n_devices, o->mesh, &plan->mesh));
    if (plan->mesh.pipe > CVY_MAX_STAGES)
        return CVY_FAIL(CVY_ERR_USAGE, "%d stages: at most %d", plan->mesh.pipe, CVY_MAX_STAGES);
    /* S decides the bits, so it is that of all devices which were asked for */
    struct cvy_mesh asked = plan->mesh;
    if (plan->n_asked != plan->n_devices)
        CVY_TRY(plan->strategy->mesh(plan->n_asked, o->mesh, &asked));
    /* a pipeline of P stages is busy S / (S + P - 1) of the time: 4 P shards keep it at 80 % */
    int64_t usual = asked.pipe > 1 ? asked.data * 4 * asked.pipe : asked.data;
    o->shards = o->shards ? o->shards : usual < o->batch_size ? usual : o->batch_size;
    plan->rule_batch = (o->batch_size + o->shards - 1) / o->shards;
    struct cvy_strategy_input input = {
        .mesh = plan->mesh, .n_shards = (int32_t)o->shards, .schedule = o->schedule};
    return plan->strategy->check(&input);
}

/* ---- devices --------------------------------------------------------------------------------------- */

/* Where in the world each device of the run is. Collective. */
static cvy_status find_places(const struct cvy_plan *plan, char *places) {
    cvy_status status = CVY_OK;
    char *mine = places + (size_t)plan->first_device * CVY_NET_PLACE;
    for (int i = 0; i < plan->team.n && status == CVY_OK; i++)
        status = plan->backend->net->place(plan->team.workers[i].device, mine + (size_t)i * CVY_NET_PLACE);
    CVY_TRY(cvy_world_meet_failure(plan->options.world, status, "the places of devices"));
    return cvy_world_gather(plan->options.world, places, (size_t)plan->team.n * CVY_NET_PLACE,
                            "the places of devices");
}

static cvy_status find_net(struct cvy_plan *plan) {
    char *places = NULL;
    if (!plan->backend->net)
        return CVY_OK;
    CVY_TRY(CVY_ALLOC(places, (size_t)plan->n_devices * CVY_NET_PLACE));
    cvy_status status = find_places(plan, places);
    if (status == CVY_OK)
        plan->team.on_devices =
            cvy_net_find(plan->team.workers[0].device, places, plan->n_devices, plan->options.fast_reduce);
    free(places);
    if (status == CVY_OK && plan->options.fast_reduce && !plan->team.on_devices)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--fast-reduce: two of the devices are on one GPU, which %s refuses; "
                        "leave the flag out, or take a GPU for each device",
                        plan->backend->net->name);
    return status;
}

/* From device to device: by memory that they reach, else by a network of their own. Collective. */
static cvy_status find_device_transport(struct cvy_plan *plan) {
    struct cvy_device **devices;
    if (plan->n_devices < 2)
        return CVY_OK;
    CVY_TRY(CVY_ALLOC(devices, (size_t)plan->team.n));
    for (int i = 0; i < plan->team.n; i++)
        devices[i] = plan->team.workers[i].device;
    if (cvy_world_size(plan->options.world) == 1 && !plan->options.fast_reduce)
        plan->team.on_devices = cvy_peers_find(devices, plan->team.n);
    free(devices);
    if (!plan->team.on_devices)
        CVY_TRY(find_net(plan));
    for (int i = 0; i < plan->team.n; i++)
        cvy_plan_attach(&plan->team.workers[i]);
    return CVY_OK;
}

static cvy_status open_devices(struct cvy_plan *plan, const struct cvy_device_list *list) {
    const cvy_world *world = plan->options.world;
    CVY_TRY(CVY_ALLOC(plan->team.workers, (size_t)list->n));
    for (int i = 0; i < list->n; i++)
        plan->team.workers[i].rank = plan->first_device + i;
    CVY_TRY(cvy_plan_connect(plan));
    for (int i = 0; i < list->n; i++) {
        struct cvy_worker *w = &plan->team.workers[i];
        struct cvy_device_spec spec = {.index = list->index[i],
                                       .part = list->part[i],
                                       .n_threads = plan->options.threads_per_device,
                                       .n_local = list->n * (world ? world->core_size : 1),
                                       .local_index = i + list->n * (world ? world->core_rank : 0),
                                       .conv_algo = plan->options.conv_algo,
                                       .is_nondeterministic = plan->options.nondeterministic,
                                       .allow_tf32 = plan->options.tf32,
                                       .timeout_s = plan->options.timeout_s,
                                       .log = &plan->options.log};
        w->plan = plan;
        w->is_evaluation_stale = true;
        CVY_TRY(plan->backend->open(&spec, &w->device));
    }
    plan->n_threads = plan->team.workers[0].device->spec.n_threads;
    CVY_TRY(find_device_transport(plan));
    return cvy_team_start(&plan->team);
}

/* Kernels are made here too: only they know what scratch memory they need. */
static cvy_status compile_task(struct cvy_worker *worker, void *argument) {
    (void)argument;
    CVY_TRY(cvy_compile_program(worker));
    CVY_TRY(cvy_program_prepare(worker->program, worker->device));
    CVY_TRY(cvy_store_prepare(&worker->store, worker->device));
    return cvy_clip_prepare(worker);
}

static void free_program(struct cvy_worker *w) {
    cvy_clip_free(&w->clip);
    cvy_program_free(w->program);
    cvy_store_free(&w->store);
    free(w->reducible_offset);
    cvy_masters_free(&w->masters);
    cvy_graph_free(w->chosen);
    w->program = NULL;
    w->store = (struct cvy_store){.persist_bytes = 0};
    w->reducible_offset = NULL;
    w->chosen = NULL;
}

/* Stages are balanced for speed. When that does not fit the memory, they are cut again, to fit. */
static cvy_status compile(struct cvy_plan *plan) {
    CVY_TRY(cvy_team_run(&plan->team, compile_task, NULL));
    CVY_TRY(cvy_plan_measure(plan));
    if (plan->is_fitting || plan->mesh.pipe == 1)
        return CVY_OK;
    for (int i = 0; i < plan->team.n; i++)
        free_program(&plan->team.workers[i]);
    cvy_plan_free_graphs(plan);
    plan->is_tight = true;
    CVY_TRY(cvy_plan_make_graphs(plan));
    CVY_TRY(cvy_team_run(&plan->team, compile_task, NULL));
    return cvy_plan_measure(plan);
}

static cvy_status check_fast_reduce(const struct cvy_plan *plan) {
    if (!plan->options.fast_reduce)
        return CVY_OK;
    if (!plan->backend->net)
        return CVY_FAIL(CVY_ERR_USAGE, "--fast-reduce: the backend %s has no NCCL; leave the flag out",
                        plan->backend->name);
    if (plan->mesh.data < 2)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "--fast-reduce: strategy %s on %d device%s adds up nothing between devices; leave the flag out",
            plan->strategy->name, plan->n_devices, plan->n_devices == 1 ? "" : "s");
    return CVY_OK;
}

/* What needs neither devices nor other processes. */
static cvy_status settle(struct cvy_plan *plan, const cvy_graph *graph, const cvy_plan_options *options,
                         struct cvy_device_list *list) {
    CVY_TRY(cvy_graph_status(graph));
    CVY_TRY(cvy_graph_rebatch(graph, graph->batch, &plan->built));
    CVY_TRY(cvy_ports_check(plan->built));
    CVY_TRY(copy_options(plan, options));
    CVY_TRY(cvy_devices_parse(plan->options.devices, plan->options.backend, plan->options.is_elastic,
                              &plan->pool, list));
    if (list->n_absent)
        cvy_log(&plan->options.log, CVY_LOG_WARNING, "%d of the devices %s %s not here: training takes %s",
                list->n_absent, plan->options.devices, list->n_absent == 1 ? "is" : "are", list->text);
    plan->backend = list->backend;
    plan->team.n = list->n;
    plan->n_devices = list->n * cvy_world_size(options->world);
    plan->n_asked = plan->n_devices + list->n_absent * cvy_world_size(options->world);
    plan->first_device = list->n * cvy_world_rank(options->world);
    plan->options.devices = list->text;
    CVY_TRY(cvy_plan_choose_precision(plan));
    CVY_TRY(choose_strategy(plan));
    return check_fast_reduce(plan);
}

static cvy_status build(struct cvy_plan *plan, const cvy_graph *graph, const cvy_plan_options *options) {
    struct cvy_device_list list;
    cvy_status status = settle(plan, graph, options, &list);
    CVY_TRY(cvy_world_meet_failure(options->world, status, "the plan"));
    CVY_TRY(cvy_plan_agree(plan));
    CVY_TRY(cvy_plan_make_graphs(plan));
    CVY_TRY(open_devices(plan, &list));
    CVY_TRY(compile(plan));
    return cvy_plan_tell_idle(plan);
}

cvy_status cvy_plan_make(const cvy_graph *graph, const cvy_plan_options *options, cvy_plan **out) {
    struct cvy_plan *plan = NULL;
    CVY_TRY(CVY_ALLOC(plan, 1));
    cvy_status status = build(plan, graph, options);
    if (status == CVY_OK)
        *out = plan;
    else
        cvy_plan_free(plan);
    return status;
}

cvy_status cvy_plan_new(const cvy_graph *graph, const cvy_plan_options *options, cvy_plan **out) {
    cvy_plan *plan = NULL;
    CVY_TRY(cvy_plan_make(graph, options, &plan));
    cvy_status status = cvy_plan_check_memory(plan, options);
    if (status == CVY_OK)
        *out = plan;
    else
        cvy_plan_free(plan);
    return status;
}

static void free_worker(struct cvy_plan *plan, struct cvy_worker *w) {
    if (w->device)
        cvy_execute_release(w);
    free_program(w);
    cvy_timeline_close(&w->timeline);
    if (w->device)
        plan->backend->close(w->device);
}

void cvy_plan_free(cvy_plan *plan) {
    if (!plan)
        return;
    if (plan->team.workers && plan->team.workers[0].is_running)
        cvy_team_stop(&plan->team);
    cvy_plan_disconnect(plan); /* groups may hold memory of devices */
    for (int i = 0; plan->team.workers && i < plan->team.n; i++)
        free_worker(plan, &plan->team.workers[i]);
    free(plan->team.workers);
    cvy_plan_free_graphs(plan);
    cvy_graph_free(plan->built);
    cvy_pool_free(&plan->pool);
    free(plan);
}

void cvy_plan_facts(const cvy_plan *plan, struct cvy_plan_facts *out) {
    *out = (struct cvy_plan_facts){.devices = plan->options.devices,
                                   .strategy = plan->strategy->name,
                                   .backend = plan->backend->name,
                                   .conv_algo = plan->options.conv_algo,
                                   .n_devices = plan->n_devices,
                                   .n_processes = cvy_world_size(plan->options.world),
                                   .shards = plan->options.shards,
                                   .threads = plan->n_threads,
                                   .is_fast_reduce = plan->options.fast_reduce};
    out->arena_bytes = cvy_plan_bytes(plan);
}
