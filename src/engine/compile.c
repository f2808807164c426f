/* compile: from the plan's graphs to one device's program. Choose and memory passes run here, per shard size;
   then the nodes are cut into segments, and every operand gets its place. */
#include "engine/cutter.h"

#include <stdlib.h>
/* ---- cutting --------------------------------------------------------------------------------------- */

static cvy_status add_forward(struct cvy_cutter *c) {
    static const char *const inputs[] = {"images", "labels", "divisor", "rng"};
    static const char *const outputs[] = {"loss", "hits", "losses", "ranks", "logits"};
    CVY_TRY(cvy_cutter_enter(c, CVY_PHASE_FORWARD, 0));
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        CVY_TRY(cvy_cutter_add_port(c, inputs[i], cvy_graph_find(c->g, inputs[i])));
    for (size_t i = 0; i < c->g->nodes.n; i++) {
        if (c->g->nodes.data[i].phase == CVY_PHASE_FORWARD)
            CVY_TRY(cvy_cutter_add_op(c, &c->g->nodes.data[i]));
    }
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        CVY_TRY(cvy_cutter_add_port(c, outputs[i], cvy_graph_output(c->g, outputs[i])));
    return CVY_OK;
}

/* Part b ends with the node that makes the last gradient of bucket b. */
static int32_t part_end(const struct cvy_cutter *c, int32_t bucket) {
    int32_t end = -1;
    for (size_t i = 0; i < c->g->reducibles.n; i++) {
        int32_t node = c->g->values.data[c->g->reducibles.data[i].value].node;
        if (c->g->reducibles.data[i].bucket <= bucket && node > end)
            end = node;
    }
    return end;
}

static cvy_status add_backward(struct cvy_cutter *c) {
    int32_t next = 0;
    for (int32_t b = 0; b < c->g->n_buckets; b++) {
        int32_t end = b == c->g->n_buckets - 1 ? (int32_t)c->g->nodes.n - 1 : part_end(c, b);
        CVY_TRY(cvy_cutter_enter(c, CVY_PHASE_BACKWARD, b));
        for (; next <= end; next++) {
            if (c->g->nodes.data[next].phase == CVY_PHASE_BACKWARD)
                CVY_TRY(cvy_cutter_add_op(c, &c->g->nodes.data[next]));
        }
    }
    return CVY_OK;
}

static cvy_status add_updates(struct cvy_cutter *c) {
    for (int32_t b = 0; b < c->g->n_buckets; b++) {
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
        if (node->phase != CVY_PHASE_REFRESH)
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

static cvy_status lay_out_sums(struct cvy_worker *w, const struct cvy_graph *g) {
    const struct cvy_backend *backend = w->device->backend;
    CVY_TRY(CVY_ALLOC(w->reducible_offset, g->reducibles.n));
    size_t at = 0, r = 0;
    for (int32_t b = 0; b < g->n_buckets; b++) {
        struct cvy_bucket bucket = {.offset = at};
        for (; r < g->reducibles.n && g->reducibles.data[r].bucket == b; r++) {
            const struct cvy_value_info *info = cvy_graph_value(g, g->reducibles.data[r].value);
            w->reducible_offset[r] = at;
            at += cvy_align_up(backend->layout_bytes(info->layout, &info->desc), CVY_ALIGN);
        }
        bucket.n_floats = (at - bucket.offset) / sizeof(float);
        CVY_TRY(cvy_vec_push(&w->program->buckets, bucket));
    }
    w->program->sum_bytes = at;
    return CVY_OK;
}

/* The operators' remarks on this shard size, for the user; once, from the first device. */
static cvy_status tell_remarks(const struct cvy_cutter *c) {
    struct cvy_text text = {0};
    for (size_t i = 0; c->w->rank == 0 && i < c->g->nodes.n; i++) {
        const struct cvy_node *node = &c->g->nodes.data[i];
        struct cvy_desc in[32];
        if (!node->op->remark)
            continue;
        for (int k = 0; k < node->n_in; k++)
            in[k] = node->in[k] == CVY_NONE ? (struct cvy_desc){0} : c->g->values.data[node->in[k]].desc;
        struct cvy_infer call = {
            .op = node->op, .attrs = node->attrs, .n_in = node->n_in, .n_out = node->n_out, .in = in};
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
        if (!cvy_program_segment(c->w->program, CVY_PHASE_UPDATE, true, 0, 0))
            CVY_TRY(add_updates(c));
    }
    CVY_TRY(add_refreshes(c));
    struct cvy_program *p = c->w->program;
    max_into(&p->slot_bytes, c->slot.slot_bytes);
    p->persist_bytes = c->w->store.persist_bytes;
    p->packed_bytes = c->w->store.packed_bytes;
    return CVY_OK;
}

cvy_status cvy_compile_size(struct cvy_worker *worker, int64_t size, bool is_training) {
    struct cvy_plan *plan = worker->plan;
    if (cvy_program_segment(worker->program, CVY_PHASE_FORWARD, is_training, 0, size))
        return CVY_OK;
    struct cvy_choose_options options = {worker->device, plan->rule_batch, is_training};
    struct cvy_cutter c = {.w = worker, .is_training = is_training, .size = size};
    struct cvy_graph *sized = NULL, *chosen = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_graph_rebatch(is_training ? plan->train : plan->evaluation, size, &sized));
    CVY_TRY_OUT(cvy_pass_choose(sized, &options, &worker->masters, &chosen));
    c.g = chosen;
    CVY_TRY_OUT(CVY_ALLOC(c.operand, chosen->values.n));
    CVY_TRY_OUT(cvy_graph_used(chosen, &c.used));
    CVY_TRY_OUT(cvy_pass_memory(chosen, worker->device, &c.slot));
    if (worker->store.values.n == 0)
        CVY_TRY_OUT(cvy_store_build(&worker->store, chosen, worker->device));
    if (is_training && !worker->reducible_offset)
        CVY_TRY_OUT(lay_out_sums(worker, chosen));
    CVY_TRY_OUT(cut_segments(&c));
    CVY_TRY_OUT(tell_remarks(&c));
out:
    cvy_graph_free(sized);
    cvy_graph_free(chosen);
    free(c.operand);
    free(c.used);
    cvy_slot_plan_free(&c.slot);
    return status;
}

cvy_status cvy_compile_program(struct cvy_worker *worker) {
    struct cvy_plan *plan = worker->plan;
    CVY_TRY(CVY_ALLOC(worker->program, 1));
    struct cvy_strategy_input input = {.n_devices = plan->n_devices,
                                       .device = worker->rank,
                                       .n_shards = (int32_t)plan->options.shards,
                                       .n_buckets = plan->train ? plan->train->n_buckets : 0};
    CVY_TRY(plan->strategy->schedule(&input, worker->program));
    if (plan->train) {
        struct cvy_choose_options options = {worker->device, plan->rule_batch, true};
        CVY_TRY(cvy_graph_rebatch(plan->train, plan->rule_batch, &worker->chosen));
        CVY_TRY(cvy_pass_masters(worker->chosen, &options, &worker->masters));
        CVY_TRY(cvy_compile_size(worker, plan->rule_batch, true));
    }
    return cvy_compile_size(worker, plan->rule_batch, false);
}
