/* The memory of a worker: one arena per device, all spaces in it, every page touched before the first step.
   When a later shard size needs more, a new arena is made and the stored values move. */
#include "engine/plan.h"

#include "rt/program_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of each space. */
static void measure(const struct cvy_worker *w, bool is_split, size_t *bytes) {
    const struct cvy_program *p = w->program;
    size_t slots = (size_t)(is_split ? p->n_slots_split : p->n_slots);
    size_t sums = (size_t)(is_split ? p->n_sums_split : p->n_sums);
    size_t scratch = p->scratch_bytes > w->store.scratch_bytes ? p->scratch_bytes : w->store.scratch_bytes;
    bytes[CVY_SPACE_NONE] = w->store.staging_bytes;
    bytes[CVY_SPACE_PERSIST] = p->persist_bytes;
    bytes[CVY_SPACE_PACKED] = p->packed_bytes;
    bytes[CVY_SPACE_SUM] = sums * p->sum_bytes;
    bytes[CVY_SPACE_TOTAL] = p->total_bytes;
    bytes[CVY_SPACE_SLOT] = slots * p->slot_bytes;
    bytes[CVY_SPACE_ROWS] = p->rows_bytes;
    bytes[CVY_SPACE_ROW] = 0;
    bytes[CVY_SPACE_SCRATCH] = cvy_align_up(scratch, CVY_ALIGN);
}

size_t cvy_input_bytes(const struct cvy_worker *worker) {
    size_t (*input_bytes)(const struct cvy_desc *images) = worker->device->backend->input_bytes;
    size_t most = 0;
    for (size_t i = 0; input_bytes && i < worker->program->segments.n; i++) {
        const struct cvy_operand *images = cvy_segment_port(&worker->program->segments.data[i], "images");
        size_t n_bytes = images ? input_bytes(&images->spec.desc) : 0;
        most = n_bytes > most ? n_bytes : most;
    }
    return most;
}

/* Beside the arena. */
static size_t other_bytes(const struct cvy_worker *worker) {
    return cvy_links_bytes(worker) + cvy_input_bytes(worker);
}

size_t cvy_worker_bytes(const struct cvy_worker *worker, bool is_split) {
    size_t arena = worker->arena ? worker->arena_bytes : cvy_arena_bytes(worker, is_split);
    return arena + other_bytes(worker);
}

struct cvy_needs cvy_worker_needs(const struct cvy_worker *worker) {
    size_t bytes[CVY_N_SPACES];
    measure(worker, false, bytes);
    struct cvy_needs needs = {
        .weights = bytes[CVY_SPACE_PERSIST] + bytes[CVY_SPACE_PACKED],
        .gradients = bytes[CVY_SPACE_SUM] + bytes[CVY_SPACE_TOTAL],
        .activations = bytes[CVY_SPACE_SLOT] + bytes[CVY_SPACE_ROWS],
        .workspace = bytes[CVY_SPACE_SCRATCH],
        .other = bytes[CVY_SPACE_NONE] + other_bytes(worker),
    };
    needs.all = needs.weights + needs.gradients + needs.activations + needs.workspace + needs.other;
    return needs;
}

size_t cvy_arena_bytes(const struct cvy_worker *worker, bool is_split) {
    size_t bytes[CVY_N_SPACES], total = 0;
    measure(worker, is_split, bytes);
    for (int s = 0; s < CVY_N_SPACES; s++)
        total += bytes[s];
    return total;
}

/* What must survive a new arena: `to` is where its space begins there. */
static cvy_status move_space(struct cvy_worker *w, enum cvy_space space, char *to) {
    char *host = NULL;
    size_t n_bytes = w->memory_bytes[space];
    CVY_TRY(CVY_ALLOC(host, n_bytes));
    cvy_status status = w->device->backend->download(w->device, host, w->memory[space], n_bytes);
    if (status == CVY_OK)
        status = w->device->backend->upload(w->device, to, host, n_bytes);
    free(host);
    return status;
}

/* The arrays that running needs: addresses of operands, reductions. */
static cvy_status prepare_arrays(struct cvy_worker *w) {
    const struct cvy_program *p = w->program;
    if (w->in)
        return CVY_OK;
    CVY_TRY(CVY_ALLOC(w->in, CVY_MAX_OPERANDS));
    CVY_TRY(CVY_ALLOC(w->out, CVY_MAX_OPERANDS));
    CVY_TRY(CVY_ALLOC(w->reductions, p->buckets.n + 1));
    CVY_TRY(CVY_ALLOC(w->row_partials, (size_t)(p->n_devices / p->n_stages)));
    CVY_TRY(CVY_ALLOC(w->mine, p->buckets.n * p->partials.n + 1)); /* and one for the rows */
    CVY_TRY(CVY_ALLOC(w->pieces, CVY_MAX_OPERANDS));
    if (w->device->backend->streams)
        CVY_TRY(CVY_ALLOC(w->accesses, CVY_MAX_OPERANDS));
    for (size_t b = 0; b < p->buckets.n; b++) {
        char *name = NULL;
        CVY_TRY(cvy_pool_printf(&w->store.pool, &name, "bucket %zu", b));
        w->reductions[b] = (struct cvy_reduction){.name = name,
                                                  .n = p->buckets.data[b].n_floats,
                                                  .n_shards = p->n_shards,
                                                  .n_partials = (int32_t)p->partials.n,
                                                  .partials = p->partials.data};
    }
    /* rows: every replica gives one */
    int32_t n_replicas = p->n_devices / p->n_stages;
    for (int32_t r = 0; r < n_replicas; r++)
        w->row_partials[r] = (struct cvy_partial){.first = r, .device = r};
    w->reductions[p->buckets.n] = (struct cvy_reduction){.name = "rows of batch-norm",
                                                         .n_shards = n_replicas,
                                                         .n_partials = n_replicas,
                                                         .partials = w->row_partials};
    return CVY_OK;
}

/* The plan was held against the limit for its own step; split calls take more. */
static cvy_status check_limit(const struct cvy_worker *w, size_t n_bytes) {
    int64_t limit = w->plan->options.device_memory;
    if (limit == 0 || n_bytes <= (size_t)limit)
        return CVY_OK;
    return CVY_FAIL(
        CVY_ERR_USAGE,
        "%s: this call needs %.1f MB and %.1f MB is the limit; raise it, or call cvy_step, which keeps "
        "fewer shards in memory than cvy_forward",
        w->device->name, (double)n_bytes / 1e6, (double)limit / 1e6);
}

/* For the messages of devices that watch accesses: "slot 1". */
static void name_parts(const struct cvy_worker *w) {
    const struct cvy_streams *streams = w->device->backend->streams;
    const struct cvy_program *p = w->program;
    for (int s = 0; streams && streams->name_memory && s < CVY_N_SPACES; s++) {
        bool is_many = s == CVY_SPACE_SUM || s == CVY_SPACE_SLOT;
        size_t part = s == CVY_SPACE_SUM    ? p->sum_bytes
                      : s == CVY_SPACE_SLOT ? p->slot_bytes
                                            : w->memory_bytes[s];
        for (size_t at = 0, k = 0; part > 0 && at < w->memory_bytes[s]; at += part, k++) {
            char name[24];
            const char *space = s == CVY_SPACE_NONE ? "staging" : cvy_space_names[s];
            snprintf(name, sizeof name, is_many ? "%s %zu" : "%s", space, k);
            streams->name_memory(w->device, w->memory[s] + at, part, name);
        }
    }
}

cvy_status cvy_execute_prepare(struct cvy_worker *worker, bool is_split) {
    struct cvy_device *device = worker->device;
    size_t bytes[CVY_N_SPACES], total = 0;
    bool fits = worker->arena != NULL;
    CVY_TRY(cvy_program_prepare(worker->program, device));
    CVY_TRY(cvy_store_prepare(&worker->store, device));
    CVY_TRY(prepare_arrays(worker));
    CVY_TRY(cvy_links_open(worker));
    if (device->backend->streams && device->backend->streams->forget)
        device->backend->streams->forget(device);
    measure(worker, is_split || worker->is_split, bytes);
    for (int s = 0; s < CVY_N_SPACES; s++) {
        fits &= bytes[s] <= worker->memory_bytes[s];
        total += bytes[s];
    }
    if (fits)
        return CVY_OK;
    void *arena = NULL;
    double touch_s = 0;
    CVY_TRY(check_limit(worker, total + other_bytes(worker)));
    CVY_TRY(device->backend->alloc(device, total, &arena, &touch_s));
    worker->touch_s += touch_s;
    char *at = arena, *old = worker->arena;
    size_t old_bytes = worker->arena_bytes;
    cvy_status status = CVY_OK;
    for (int s = 0; s < CVY_N_SPACES; s++) {
        bool is_kept = s == CVY_SPACE_PERSIST || s == CVY_SPACE_TOTAL;
        if (old && is_kept && status == CVY_OK)
            status = move_space(worker, s, at);
        worker->memory[s] = at;
        worker->memory_bytes[s] = bytes[s];
        at += bytes[s];
    }
    if (old)
        device->backend->release(device, old, old_bytes);
    worker->arena = arena;
    worker->arena_bytes = total;
    name_parts(worker);
    worker->is_split |= is_split;
    worker->is_evaluation_stale = true;
    if (old && status == CVY_OK) { /* the packed copies are gone */
        struct cvy_instr instr = cvy_instr_make(CVY_I_REFRESH);
        instr.part = 0;
        cvy_schedule refresh = {&instr, 1, 1};
        struct cvy_work none = {0};
        status = cvy_execute(worker, &refresh, &none);
    }
    return status;
}

void cvy_execute_release(struct cvy_worker *worker) {
    if (worker->arena)
        worker->device->backend->release(worker->device, worker->arena, worker->arena_bytes);
    worker->arena = NULL;
    free(worker->in);
    free(worker->out);
    free(worker->reductions);
    free(worker->row_partials);
    free(worker->mine);
    free(worker->pieces);
    free(worker->accesses);
    worker->in = worker->out = NULL;
    worker->reductions = NULL;
    worker->row_partials = NULL;
    worker->mine = NULL;
    worker->pieces = NULL;
    worker->accesses = NULL;
}
