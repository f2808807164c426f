/* compile: from the plan's graphs to one device's program. Choose and memory passes run here, per shard size;
   then the nodes are cut into segments, and every operand gets its place. */
#include "engine/cutter.h"

#include <stdlib.h>

/* ---- stages ---------------------------------------------------------------------------------------- */

static bool is_pass(const struct cvy_node *node) {
    return node->phase == CVY_PHASE_FORWARD || node->phase == CVY_PHASE_BACKWARD;
}

/* The forward or backward node that makes v, or NULL. */
static const struct cvy_node *pass_maker(const struct cvy_graph *g, cvy_value v) {
    int32_t node = v == CVY_NONE ? -1 : g->values.data[v].node;
    return node >= 0 && is_pass(&g->nodes.data[node]) ? &g->nodes.data[node] : NULL;
}

/* Which stages read each value in their forward and backward passes. The caller frees *out. */
static cvy_status find_readers(const struct cvy_graph *g, uint64_t **out) {
    CVY_TRY(CVY_ALLOC(*out, g->values.n));
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct cvy_node *node = &g->nodes.data[i];
        for (int k = 0; is_pass(node) && k < node->n_in; k++) {
            if (node->in[k] != CVY_NONE)
                (*out)[node->in[k]] |= UINT64_C(1) << node->stage;
        }
    }
    return CVY_OK;
}

/* Adds to `sends` what the graph's values make necessary. */
static cvy_status find_sends(const struct cvy_graph *g, struct cvy_strategy_input *input) {
    uint64_t *readers = NULL;
    CVY_TRY(find_readers(g, &readers));
    for (size_t v = 0; v < g->values.n; v++) {
        const struct cvy_node *maker = pass_maker(g, (cvy_value)v);
        if (maker)
            input->sends[maker->phase][maker->stage] |= readers[v] & ~(UINT64_C(1) << maker->stage);
    }
    free(readers);
    return CVY_OK;
}

/* Messages of one phase as ports of the segment being filled: "to:2", "from:0"; in the order of values. */
static cvy_status add_messages(struct cvy_cutter *c, enum cvy_phase phase) {
    int32_t mine = c->w->program->stage;
    for (int32_t peer = 0; peer < c->w->program->n_stages; peer++) {
        for (size_t v = 0; v < c->g->values.n; v++) {
            const struct cvy_node *maker = pass_maker(c->g, (cvy_value)v);
            char *name = NULL;
            if (!maker || maker->phase != phase || peer == mine)
                continue;
            if (maker->stage == mine && (c->readers[v] >> peer & 1))
                CVY_TRY(cvy_pool_printf(&c->w->program->pool, &name, "to:%d", peer));
            else if (maker->stage == peer && (c->readers[v] >> mine & 1))
                CVY_TRY(cvy_pool_printf(&c->w->program->pool, &name, "from:%d", peer));
            if (name)
                CVY_TRY(cvy_cutter_add_port(c, name, (cvy_value)v));
        }
    }
    return CVY_OK;
}

/* ---- cutting --------------------------------------------------------------------------------------- */

static bool is_mine(const struct cvy_cutter *c, const struct cvy_node *node) {
    return node->stage == c->w->program->stage;
}

/* The host's port, on the stages that read the input or make the output. */
static cvy_status add_host_port(struct cvy_cutter *c, const char *name, cvy_value v) {
    if (v == CVY_NONE)
        return CVY_OK;
    const struct cvy_node *maker = pass_maker(c->g, v);
    bool is_here = maker ? is_mine(c, maker) : (c->readers[v] >> c->w->program->stage & 1) != 0;
    return is_here ? cvy_cutter_add_port(c, name, v) : CVY_OK;
}

/* The nodes of one part; *next is the first that no part has had. */
static cvy_status add_part(struct cvy_cutter *c, enum cvy_phase phase, const struct cvy_part *part,
                           int32_t *next) {
    for (; *next <= part->end; ++*next) {
        const struct cvy_node *node = &c->g->nodes.data[*next];
        if (node->phase == phase && is_mine(c, node))
            CVY_TRY(cvy_cutter_add_op(c, node));
    }
    return CVY_OK;
}

/* The host finds all its ports in the first part, wherever their operands are read or made. */
static cvy_status add_forward(struct cvy_cutter *c) {
    static const char *const inputs[] = {"images", "labels", "divisor", "rng", "loss_scale"};
    static const char *const outputs[] = {"loss", "hits", "losses", "ranks", "logits"};
    const cvy_parts *parts = &c->parts[CVY_PHASE_FORWARD];
    int32_t next = 0;
    CVY_TRY(cvy_cutter_enter(c, CVY_PHASE_FORWARD, 0));
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        CVY_TRY(add_host_port(c, inputs[i], cvy_graph_find(c->g, inputs[i])));
    for (size_t p = 0; p < parts->n; p++) {
        CVY_TRY(cvy_cutter_enter(c, CVY_PHASE_FORWARD, (int32_t)p));
        CVY_TRY(add_part(c, CVY_PHASE_FORWARD, &parts->data[p], &next));
    }
    CVY_TRY(cvy_cutter_enter(c, CVY_PHASE_FORWARD, 0));
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        CVY_TRY(add_host_port(c, outputs[i], cvy_graph_output(c->g, outputs[i])));
    return add_messages(c, CVY_PHASE_FORWARD);
}

static cvy_status add_backward(struct cvy_cutter *c) {
    const cvy_parts *parts = &c->parts[CVY_PHASE_BACKWARD];
    int32_t next = 0;
    for (size_t p = 0; p < parts->n; p++) {
        CVY_TRY(cvy_cutter_enter(c, CVY_PHASE_BACKWARD, c->first_bucket + (int32_t)p));
        CVY_TRY(add_part(c, CVY_PHASE_BACKWARD, &parts->data[p], &next));
        if (p == 0)
            CVY_TRY(add_messages(c, CVY_PHASE_BACKWARD));
    }
    return CVY_OK;
}

static cvy_status add_updates(struct cvy_cutter *c) {
    for (int32_t b = c->first_bucket; b <= c->last_bucket; b++) {
        CVY_TRY(cvy_cutter_enter(c, CVY_PHASE_UPDATE, b));
        CVY_TRY(cvy_cutter_add_port(c, "hyper", cvy_graph_find(c->g, "hyper")));
        for (size_t i = 0; i < c->g->nodes.n; i++) {
            if (c->g->nodes.data[i].phase == CVY_PHASE_UPDATE && c->g->nodes.data[i].bucket == b)
                CVY_TRY(cvy_cutter_add_op(c, &c->g->nodes.data[i]));
        }
    }
    return CVY_OK;
}

/* Packed copies that no earlier graph wanted: remade after the update of their bucket, and at the start; those
   that evaluation alone wants, before an evaluation. */
static cvy_status add_refreshes(struct cvy_cutter *c) {
    for (size_t i = 0; i < c->g->nodes.n; i++) {
        const struct cvy_node *node = &c->g->nodes.data[i];
        struct cvy_packed *packed;
        if (node->phase != CVY_PHASE_REFRESH || !is_mine(c, node))
            continue;
        CVY_TRY(cvy_store_pack(&c->w->store, cvy_graph_value(c->g, node->out[0])->name,
                               cvy_cutter_bytes(c, node->out[0]), &packed));
        if (packed->has_refresh[true] || packed->has_refresh[c->is_training])
            continue;
        packed->has_refresh[c->is_training] = true;
        CVY_TRY(cvy_cutter_enter(c, CVY_PHASE_REFRESH, c->is_training ? 0 : 1));
        CVY_TRY(cvy_cutter_add_op(c, node));
        if (c->is_training && node->bucket >= 0) {
            CVY_TRY(cvy_cutter_enter(c, CVY_PHASE_UPDATE, node->bucket));
            CVY_TRY(cvy_cutter_add_op(c, node));
        }
    }
    return CVY_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------- */

/* The sums' layout; buckets of other stages are empty here. */
static cvy_status lay_out_sums(const struct cvy_cutter *c) {
    struct cvy_worker *w = c->w;
    CVY_TRY(CVY_ALLOC(w->reducible_offset, c->g->reducibles.n));
    size_t at = 0, r = 0;
    for (int32_t b = 0; b < c->g->n_buckets; b++) {
        struct cvy_bucket bucket = {.offset = at};
        for (; r < c->g->reducibles.n && c->g->reducibles.data[r].bucket == b; r++) {
            if (b < c->first_bucket || b > c->last_bucket)
                continue;
            w->reducible_offset[r] = at;
            at += cvy_align_up(cvy_cutter_bytes(c, c->g->reducibles.data[r].value), CVY_ALIGN);
        }
        bucket.n_floats = (at - bucket.offset) / sizeof(float);
        CVY_TRY(cvy_vec_push(&w->program->buckets, bucket));
    }
    w->program->sum_bytes = at;
    w->program->total_bytes = w->plan->options.accumulate > 1 ? at : 0;
    return CVY_OK;
}

/* The operators' remarks on this shard size, for the user; once, from the first device. */
static cvy_status tell_remarks(const struct cvy_cutter *c) {
    struct cvy_text text = {0};
    for (size_t i = 0; c->w->rank == 0 && i < c->g->nodes.n; i++) {
        const struct cvy_node *node = &c->g->nodes.data[i];
        struct cvy_desc in[32];
        if (!node->op->remark || node->phase != CVY_PHASE_FORWARD)
            continue;
        struct cvy_infer call;
        cvy_graph_call(c->g, node, in, &call);
        size_t before = text.n;
        node->op->remark(&call, &text);
        if (text.n > before)
            cvy_log(&c->w->plan->options.log, CVY_LOG_WARNING, "%s: %s", node->name, text.data + before);
    }
    cvy_status status = text.status;
    cvy_text_free(&text);
    return status;
}

static void max_into(size_t *into, size_t n) { *into = n > *into ? n : *into; }

static cvy_status cut_segments(struct cvy_cutter *c) {
    CVY_TRY(add_forward(c));
    if (c->is_training) {
        CVY_TRY(add_backward(c));
        if (!cvy_program_segment(c->w->program, CVY_PHASE_UPDATE, true, c->first_bucket, 0))
            CVY_TRY(add_updates(c));
    }
    CVY_TRY(add_refreshes(c));
    struct cvy_program *p = c->w->program;
    max_into(&p->slot_bytes, c->slot.slot_bytes);
    max_into(&p->rows_bytes, cvy_rows_bytes(c->g));
    p->persist_bytes = c->w->store.persist_bytes;
    p->packed_bytes = c->w->store.packed_bytes;
    return CVY_OK;
}

/* Which buckets belong to this stage: consecutive ones. */
static cvy_status find_buckets(struct cvy_cutter *c) {
    int32_t *stage = NULL;
    CVY_TRY(CVY_ALLOC(stage, (size_t)c->g->n_buckets));
    cvy_bucket_stages(c->g, stage);
    c->first_bucket = c->last_bucket = -1;
    for (int32_t b = 0; b < c->g->n_buckets; b++) {
        if (stage[b] != c->w->program->stage)
            continue;
        c->first_bucket = c->first_bucket < 0 ? b : c->first_bucket;
        c->last_bucket = b;
    }
    free(stage);
    return CVY_OK;
}

cvy_status cvy_choose_graph(const struct cvy_worker *worker, int64_t size, bool is_training,
                            struct cvy_graph **out) {
    struct cvy_plan *plan = worker->plan;
    struct cvy_choose_options options = {worker->device, plan->rule_batch, is_training};
    struct cvy_graph *sized = NULL;
    CVY_TRY(cvy_graph_rebatch(is_training ? cvy_plan_training(plan) : plan->evaluation, size, &sized));
    cvy_status status = cvy_pass_choose(sized, &options, &worker->masters, out);
    cvy_graph_free(sized);
    return status;
}

/* Adds the segments for shards of `size` images, of whose graph layouts are chosen. */
static cvy_status compile_chosen(struct cvy_worker *worker, const struct cvy_graph *chosen, int64_t size,
                                 bool is_training) {
    struct cvy_cutter c = {.w = worker, .g = chosen, .is_training = is_training, .size = size};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(find_buckets(&c));
    CVY_TRY_OUT(cvy_cut_parts(chosen, c.first_bucket, c.last_bucket, c.parts));
    CVY_TRY_OUT(find_readers(chosen, &c.readers));
    CVY_TRY_OUT(CVY_ALLOC(c.operand, chosen->values.n));
    CVY_TRY_OUT(cvy_graph_used(chosen, &c.used));
    CVY_TRY_OUT(cvy_pass_memory(chosen, worker->device, worker->program->stage, &c.slot));
    if (worker->store.values.n == 0)
        CVY_TRY_OUT(cvy_store_build(&worker->store, chosen, worker->plan->evaluation, worker->device,
                                    worker->program->stage));
    if (is_training && !worker->reducible_offset)
        CVY_TRY_OUT(lay_out_sums(&c));
    CVY_TRY_OUT(cut_segments(&c));
    CVY_TRY_OUT(tell_remarks(&c));
out:
    free(c.readers);
    free(c.operand);
    free(c.used);
    cvy_parts_free(c.parts);
    cvy_slot_plan_free(&c.slot);
    return status;
}

cvy_status cvy_compile_size(struct cvy_worker *worker, int64_t size, bool is_training) {
    struct cvy_graph *chosen = NULL;
    if (cvy_program_segment(worker->program, CVY_PHASE_FORWARD, is_training, 0, size))
        return CVY_OK;
    CVY_TRY(cvy_choose_graph(worker, size, is_training, &chosen));
    cvy_status status = compile_chosen(worker, chosen, size, is_training);
    cvy_graph_free(chosen);
    return status;
}

/* The schedules, from buckets and messages; `train` may be NULL. */
static cvy_status schedule(struct cvy_worker *worker, const struct cvy_graph *train,
                           const struct cvy_graph *evaluation) {
    struct cvy_plan *plan = worker->plan;
    struct cvy_strategy_input input = {.mesh = plan->mesh,
                                       .device = worker->rank,
                                       .n_shards = (int32_t)plan->options.shards,
                                       .n_buckets = train ? train->n_buckets : 0,
                                       .is_accumulating = plan->options.accumulate > 1,
                                       .is_scaled = train && (plan->low == CVY_F16 || plan->options.on_nan),
                                       .is_clipped = plan->options.clip_grad_norm > 0,
                                       .schedule = plan->options.schedule};
    int32_t *bucket_stage = NULL;
    cvy_parts parts[2] = {{NULL, 0, 0}, {NULL, 0, 0}};
    cvy_status status = CVY_OK;
    if (train && cvy_has_exchanges(train)) { /* there is one stage, with all buckets */
        CVY_TRY_OUT(cvy_cut_parts(train, 0, train->n_buckets - 1, parts));
        for (int phase = 0; phase < 2; phase++) {
            input.parts[phase] = parts[phase].data;
            input.n_parts[phase] = (int32_t)parts[phase].n;
        }
    }
    if (train) {
        CVY_TRY_OUT(CVY_ALLOC(bucket_stage, (size_t)train->n_buckets));
        cvy_bucket_stages(train, bucket_stage);
        input.bucket_stage = bucket_stage;
        CVY_TRY_OUT(find_sends(train, &input));
    }
    CVY_TRY_OUT(find_sends(evaluation, &input));
    CVY_TRY_OUT(plan->strategy->schedule(&input, worker->program));
out:
    cvy_parts_free(parts);
    free(bucket_stage);
    return status;
}

/* What every stage keeps, also those of other processes; once, by this process's first device. */
static cvy_status list_stores(const struct cvy_worker *worker, const struct cvy_graph *chosen) {
    struct cvy_plan *plan = worker->plan;
    if (worker->rank != plan->first_device)
        return CVY_OK;
    CVY_TRY(CVY_ALLOC(plan->stores, (size_t)plan->mesh.pipe));
    for (int32_t stage = 0; stage < plan->mesh.pipe; stage++)
        CVY_TRY(cvy_store_build(&plan->stores[stage], chosen, plan->evaluation, worker->device, stage));
    return CVY_OK;
}

cvy_status cvy_compile_program(struct cvy_worker *worker) {
    struct cvy_plan *plan = worker->plan;
    struct cvy_graph *train = NULL, *evaluation = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(CVY_ALLOC(worker->program, 1));
    if (plan->train) {
        struct cvy_choose_options options = {worker->device, plan->rule_batch, true};
        CVY_TRY_OUT(cvy_graph_rebatch(plan->train, plan->rule_batch, &worker->chosen));
        CVY_TRY_OUT(cvy_pass_masters(worker->chosen, &options, &worker->masters));
        CVY_TRY_OUT(cvy_choose_graph(worker, plan->rule_batch, true, &train));
    }
    CVY_TRY_OUT(cvy_choose_graph(worker, plan->rule_batch, false, &evaluation));
    CVY_TRY_OUT(schedule(worker, train, evaluation));
    CVY_TRY_OUT(list_stores(worker, train ? train : evaluation));
    if (train)
        CVY_TRY_OUT(compile_chosen(worker, train, plan->rule_batch, true));
    CVY_TRY_OUT(compile_chosen(worker, evaluation, plan->rule_batch, false));
out:
    cvy_graph_free(train);
    cvy_graph_free(evaluation);
    return status;
}
