/* explain: what the plan did, as text: the graph before and after each pass, the programs, a summary. */
#include "engine/plan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct section {
    const char *pass;
    cvy_status (*print)(const struct cvy_plan *plan, struct cvy_text *out);
};

static cvy_status print_graph(const char *title, const struct cvy_graph *g, cvy_layout_printer layouts,
                              struct cvy_text *out) {
    if (!g) {
        cvy_text_printf(out, "# %s: none, this plan is for inference\n", title);
        return out->status;
    }
    cvy_text_printf(out, "# %s: %zu nodes\n", title, g->nodes.n);
    return cvy_graph_print(g, layouts, out);
}

static cvy_status print_build(const struct cvy_plan *plan, struct cvy_text *out) {
    return print_graph("built", plan->built, NULL, out);
}

static cvy_status print_fuse(const struct cvy_plan *plan, struct cvy_text *out) {
    CVY_TRY(print_graph("before fuse", plan->built, NULL, out));
    return print_graph("after fuse", plan->fused ? plan->fused : plan->evaluation, NULL, out);
}

static cvy_status print_autodiff(const struct cvy_plan *plan, struct cvy_text *out) {
    CVY_TRY(print_graph("before autodiff", plan->fused, NULL, out));
    return print_graph("after autodiff and update", plan->train, NULL, out);
}

/* The devices belong to the workers' threads: choosing runs there. */
static cvy_status choose_task(struct cvy_worker *worker, void *argument) {
    struct cvy_graph **chosen = argument;
    const struct cvy_plan *plan = worker->plan;
    return worker->rank == 0 ? cvy_choose_graph(worker, plan->rule_batch, plan->train != NULL, chosen)
                             : CVY_OK;
}

static cvy_status print_choose(const struct cvy_plan *plan, struct cvy_text *out) {
    struct cvy_graph *chosen = NULL;
    CVY_TRY(print_graph("before choose", plan->train ? plan->train : plan->evaluation, NULL, out));
    /* the plan itself does not change: the cast gives the team, whose threads do the work */
    CVY_TRY(cvy_team_run((struct cvy_team *)&plan->team, choose_task, &chosen));
    cvy_status status = print_graph("after choose", chosen, plan->backend->layout_print, out);
    cvy_graph_free(chosen);
    return status;
}

static cvy_status print_program(const struct cvy_plan *plan, struct cvy_text *out) {
    for (int i = 0; i < plan->team.n; i++)
        CVY_TRY(cvy_program_print(plan->team.workers[i].program, plan->backend, out));
    return CVY_OK;
}

static void print_space(struct cvy_text *out, const char *what, size_t n_bytes, int n) {
    cvy_text_printf(out, "  %-42s %10.2f MB", what, (double)n_bytes / 1e6);
    if (n >= 0)
        cvy_text_printf(out, " x %d", n);
    cvy_text_printf(out, "\n");
}

int cvy_plan_stage_layers(const struct cvy_plan *plan, int32_t stage, double *share) {
    const struct cvy_graph *g = plan->train ? plan->train : plan->evaluation;
    const struct cvy_stage_options balance = cvy_plan_stage_options(plan);
    double mine = 0, all = 0;
    int n = 0;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct cvy_node *node = &g->nodes.data[i];
        bool is_forward = node->phase == CVY_PHASE_FORWARD;
        double time = is_forward ? cvy_layer_time(g, node, &balance) : 0;
        all += time;
        mine += node->stage == stage ? time : 0;
        n += is_forward && node->stage == stage;
    }
    *share = all > 0 ? mine / all : 0;
    return n;
}

/* Names of this process's devices that hold the stage, and the first of them; NULL where other processes have it. */
static const struct cvy_worker *stage_devices(const struct cvy_plan *plan, int32_t stage,
                                              struct cvy_text *names) {
    const struct cvy_worker *first = NULL;
    for (int k = 0; k < plan->team.n; k++) {
        const struct cvy_worker *w = &plan->team.workers[k];
        if (w->program->stage != stage)
            continue;
        cvy_text_printf(names, "%s%s", first ? "," : "", w->device->name);
        first = first ? first : w;
    }
    return first;
}

static void print_stage(const struct cvy_plan *plan, int32_t stage, struct cvy_text *out) {
    struct cvy_text names = {0};
    const struct cvy_worker *w = stage_devices(plan, stage, &names);
    int64_t n_params = 0;
    double share;
    int n = cvy_plan_stage_layers(plan, stage, &share);
    for (size_t i = 0; w && i < w->store.values.n; i++) {
        if (w->store.values.data[i].kind == CVY_VALUE_PARAM)
            n_params += cvy_shape_count(&w->store.values.data[i].desc.shape);
    }
    if (w && names.data)
        cvy_text_printf(out, "%5d  %-10s %10d %11lld %15.2f %10d %10.1f %4.0f %%\n", stage, names.data, n,
                        (long long)n_params, (double)w->program->slot_bytes / 1e6, w->program->n_slots,
                        (double)cvy_worker_bytes(w, false) / 1e6, share * 100);
    out->status = out->status ? out->status : names.status;
    cvy_text_free(&names);
}

static void print_stages(const struct cvy_plan *plan, struct cvy_text *out) {
    cvy_text_printf(out,
                    "stage  device      operators  parameters  activations MB  in flight  memory MB  time\n");
    for (int32_t stage = 0; stage < plan->mesh.pipe; stage++)
        print_stage(plan, stage, out);
}

static void print_idle(const struct cvy_plan *plan, struct cvy_text *out) {
    struct cvy_text names = {0};
    int n = cvy_plan_idle(plan, INT_MAX, &names);
    if (n > 0)
        cvy_text_printf(out, "no gradient, stay as they are: %d parameters: %s\n", n, names.data);
    out->status = out->status ? out->status : names.status;
    cvy_text_free(&names);
}

static cvy_status print_summary(const struct cvy_plan *plan, struct cvy_text *out) {
    const struct cvy_program *p = plan->team.workers[0].program;
    cvy_text_printf(out, "%d device%s: %s (%s), strategy %s, S=%lld shards of up to %lld images, T=%d\n",
                    plan->n_devices, plan->n_devices > 1 ? "s" : "", plan->options.devices,
                    plan->backend->name, plan->strategy->name, (long long)plan->options.shards,
                    (long long)plan->rule_batch, plan->n_threads);
    if (plan->train && plan->options.accumulate > 1)
        cvy_text_printf(out, "up to %lld batches of up to %lld images make an update\n",
                        (long long)plan->options.accumulate, (long long)plan->options.batch_size);
    if (plan->train)
        cvy_text_printf(
            out,
            "training graph: %zu nodes (built with %zu, fused to %zu), %zu values to reduce in %d "
            "buckets\n",
            plan->train->nodes.n, plan->built->nodes.n, plan->fused->nodes.n, plan->train->reducibles.n,
            plan->train->n_buckets);
    print_idle(plan, out);
    if (plan->mesh.pipe > 1)
        print_stages(plan, out);
    cvy_text_printf(out, plan->mesh.pipe > 1 ? "memory of the first device:\n" : "memory of each device:\n");
    print_space(out, "parameters, buffers, optimiser state", p->persist_bytes, -1);
    print_space(out, "packed copies of parameters", p->packed_bytes, -1);
    print_space(out, "gradients and partial sums", p->sum_bytes, p->n_sums);
    if (p->total_bytes)
        print_space(out, "gradients of an update's earlier batches", p->total_bytes, -1);
    print_space(out, "activations of one shard, shards in flight", p->slot_bytes, p->n_slots);
    if (p->rows_bytes)
        print_space(out, "rows that shards exchange for batch-norm", p->rows_bytes, -1);
    print_space(out, "workspace of the kernels", p->scratch_bytes, -1);
    print_space(out, "a value on its way to or from the host", plan->team.workers[0].store.staging_bytes, -1);
    if (plan->mesh.pipe > 1)
        print_space(out, "messages to other stages", cvy_links_bytes(&plan->team.workers[0]), -1);
    if (cvy_input_bytes(&plan->team.workers[0]))
        print_space(out, "images as they come, two shards of floats", cvy_input_bytes(&plan->team.workers[0]),
                    -1);
    print_space(out, "all", cvy_worker_bytes(&plan->team.workers[0], false), -1);
    if (plan->options.device_memory)
        cvy_text_printf(out, "  it fits: the largest device takes %.2f MB of %.2f MB\n",
                        (double)cvy_plan_bytes(plan) / 1e6, (double)plan->options.device_memory / 1e6);
    cvy_text_printf(out, "  (with forward, backward and update called apart: %d sums, %d slots)\n",
                    p->n_sums_split, p->n_slots_split);
    return out->status;
}

static const struct section sections[] = {
    {"build", print_build},   {"fuse", print_fuse},       {"autodiff", print_autodiff},
    {"choose", print_choose}, {"program", print_program},
};
enum { N_SECTIONS = sizeof sections / sizeof *sections };

cvy_status cvy_plan_explain(const cvy_plan *plan, const char *pass, char **out) {
    struct cvy_text text = {0};
    const char *names[N_SECTIONS];
    char suggestion[CVY_SUGGESTION];
    cvy_status status = CVY_ERR_USAGE;
    for (size_t i = 0; i < N_SECTIONS; i++) {
        names[i] = sections[i].pass;
        if (pass && strcmp(pass, sections[i].pass) == 0)
            status = sections[i].print(plan, &text);
    }
    if (!pass)
        status = print_summary(plan, &text);
    else if (status == CVY_ERR_USAGE && text.n == 0)
        status = CVY_FAIL(CVY_ERR_USAGE, "no pass '%s': take build, fuse, autodiff, choose or program%s",
                          pass, cvy_suggest(suggestion, pass, names, N_SECTIONS));
    if (status == CVY_OK)
        status = cvy_text_take(&text, out);
    cvy_text_free(&text);
    return status;
}
