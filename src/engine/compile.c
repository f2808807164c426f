/* compile: from the plan's graphs to one device's program. Choose and memory passes run here, per shard size;
   then the nodes are cut into segments, and every operand gets its place. */
#include "engine/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct compiler {
    struct cvy_worker *w;
    const struct cvy_graph *g; /* chosen, of one shard size */
    struct cvy_slot_plan slot;
    bool *used;
    bool is_training;
    int64_t size;
    int32_t *operand; /* value -> index in the segment being filled; -1: not there yet */
    size_t segment;   /* index: the array moves */
};

/* ---- segments -------------------------------------------------------------------------------------- */

struct cvy_segment *cvy_program_segment(const struct cvy_program *program, enum cvy_phase phase,
                                        bool is_training, int32_t part, int64_t shard_size) {
    for (size_t i = 0; i < program->segments.n; i++) {
        struct cvy_segment *s = &program->segments.data[i];
        if (s->phase == phase && s->is_training == is_training && s->part == part &&
            s->shard_size == shard_size)
            return s;
    }
    return NULL;
}

static cvy_status segment_name(struct cvy_program *program, const struct cvy_segment *s, char **out) {
    struct cvy_pool *pool = &program->pool;
    if (s->phase == CVY_PHASE_UPDATE)
        return cvy_pool_printf(pool, out, "U%d", s->part);
    if (s->phase == CVY_PHASE_REFRESH)
        return cvy_pool_printf(pool, out, s->is_training ? "R" : "RE");
    if (s->phase == CVY_PHASE_BACKWARD)
        return cvy_pool_printf(pool, out, "B0.%d/%" PRId64, s->part, s->shard_size);
    return cvy_pool_printf(pool, out, "%s/%" PRId64, s->is_training ? "F0" : "E0", s->shard_size);
}

/* Starts filling the segment, a new one where there is none. */
static cvy_status enter_segment(struct compiler *c, enum cvy_phase phase, int32_t part) {
    bool is_sized = phase == CVY_PHASE_FORWARD || phase == CVY_PHASE_BACKWARD;
    bool is_training = phase == CVY_PHASE_UPDATE || c->is_training;
    struct cvy_program *program = c->w->program;
    struct cvy_segment *s = cvy_program_segment(program, phase, is_training, part, is_sized ? c->size : 0);
    if (!s) {
        struct cvy_segment fresh = {.phase = phase,
                                    .is_training = is_training,
                                    .stage = 0,
                                    .part = part,
                                    .shard_size = is_sized ? c->size : 0,
                                    .rule_batch = c->w->plan->rule_batch};
        char *name = NULL;
        CVY_TRY(segment_name(program, &fresh, &name));
        fresh.name = name;
        CVY_TRY(cvy_vec_push(&program->segments, fresh));
        s = &program->segments.data[program->segments.n - 1];
    }
    c->segment = (size_t)(s - program->segments.data);
    for (size_t v = 0; v < c->g->values.n; v++)
        c->operand[v] = -1;
    return CVY_OK;
}

/* ---- operands -------------------------------------------------------------------------------------- */

static const struct cvy_node *producer(const struct compiler *c, cvy_value v) {
    int32_t node = c->g->values.data[v].node;
    return node < 0 ? NULL : &c->g->nodes.data[node];
}

static size_t value_bytes(const struct compiler *c, cvy_value v) {
    const struct cvy_value_info *info = &c->g->values.data[v];
    return c->w->device->backend->layout_bytes(info->layout, &info->desc);
}

static cvy_status place_of(struct compiler *c, cvy_value v, struct cvy_place *out) {
    const struct cvy_value_info *info = &c->g->values.data[v];
    const struct cvy_node *node = producer(c, v);
    struct cvy_packed *packed;
    if (node && node->phase == CVY_PHASE_UPDATE) /* the new value of a stored one */
        return place_of(c, node->in[cvy_op_aliased_input(node->op, info->output)], out);
    if (node && node->phase == CVY_PHASE_REFRESH) {
        CVY_TRY(cvy_store_pack(&c->w->store, info->name, value_bytes(c, v), &packed));
        *out = packed->place;
        return CVY_OK;
    }
    if (info->kind != CVY_VALUE_INPUT && info->kind != CVY_VALUE_RESULT) {
        const struct cvy_stored *stored = cvy_store_find(&c->w->store, info->name);
        if (!stored)
            return CVY_FAIL(CVY_ERR_FAILED, "%s is not in the parameter store", info->name);
        *out = stored->place;
        return CVY_OK;
    }
    for (size_t i = 0; i < c->g->reducibles.n; i++) {
        if (c->g->reducibles.data[i].value == v) {
            *out = (struct cvy_place){CVY_SPACE_SUM, c->w->reducible_offset[i], value_bytes(c, v)};
            return CVY_OK;
        }
    }
    if (c->slot.offset[v] != SIZE_MAX) /* else nobody reads it */
        *out = (struct cvy_place){CVY_SPACE_SLOT, c->slot.offset[v], c->slot.n_bytes[v]};
    return CVY_OK;
}

/* A segment that is entered again (an update that gets another packed copy) has some operands already. */
static int32_t find_operand(const struct cvy_segment *s, const char *name) {
    for (size_t i = 0; i < s->operands.n; i++) {
        if (strcmp(s->operands.data[i].name, name) == 0)
            return (int32_t)i;
    }
    return -1;
}

/* The segment's operand that stands for value v. */
static cvy_status operand_of(struct compiler *c, cvy_value v, int32_t *out) {
    if (v == CVY_NONE) {
        *out = -1;
        return CVY_OK;
    }
    const struct cvy_value_info *info = &c->g->values.data[v];
    struct cvy_segment *s = &c->w->program->segments.data[c->segment];
    if (c->operand[v] < 0)
        c->operand[v] = find_operand(s, info->name);
    if (c->operand[v] < 0) {
        struct cvy_operand operand = {
            .spec = {.desc = info->desc,
                     .layout = info->layout,
                     .is_fixed = true,
                     .is_absent = !c->used[v] && producer(c, v) && producer(c, v)->phase != CVY_PHASE_UPDATE,
                     .is_private = info->is_private}};
        char *name = NULL;
        CVY_TRY(cvy_pool_strdup(&c->w->program->pool, info->name, &name));
        operand.name = name;
        CVY_TRY(place_of(c, v, &operand.place));
        c->operand[v] = (int32_t)s->operands.n;
        CVY_TRY(cvy_vec_push(&s->operands, operand));
    }
    *out = c->operand[v];
    return CVY_OK;
}

static cvy_status add_op(struct compiler *c, const struct cvy_node *node) {
    struct cvy_pool *pool = &c->w->program->pool;
    struct cvy_prog_op op = {.op = node->op,
                             .algorithm = node->algorithm,
                             .phase = node->phase,
                             .id = node->id,
                             .n_in = node->n_in,
                             .n_out = node->n_out};
    char *name = NULL;
    void *attrs = NULL;
    CVY_TRY(cvy_pool_strdup(pool, node->name, &name));
    CVY_TRY(cvy_pool_copy(pool, node->attrs, node->op->attrs_size, &attrs));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)node->n_in * sizeof *op.in, (void **)&op.in));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)node->n_out * sizeof *op.out, (void **)&op.out));
    op.name = name;
    op.attrs = attrs;
    for (int k = 0; k < node->n_in; k++)
        CVY_TRY(operand_of(c, node->in[k], &op.in[k]));
    for (int k = 0; k < node->n_out; k++)
        CVY_TRY(operand_of(c, node->out[k], &op.out[k]));
    return cvy_vec_push(&c->w->program->segments.data[c->segment].ops, op);
}

static cvy_status add_port(struct compiler *c, const char *name, cvy_value v) {
    struct cvy_port port = {.name = name};
    if (v == CVY_NONE)
        return CVY_OK;
    CVY_TRY(operand_of(c, v, &port.operand));
    return cvy_vec_push(&c->w->program->segments.data[c->segment].ports, port);
}

/* ---- cutting --------------------------------------------------------------------------------------- */

static cvy_status add_forward(struct compiler *c) {
    static const char *const inputs[] = {"images", "labels", "divisor", "rng"};
    static const char *const outputs[] = {"loss", "hits", "losses", "ranks", "logits"};
    CVY_TRY(enter_segment(c, CVY_PHASE_FORWARD, 0));
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        CVY_TRY(add_port(c, inputs[i], cvy_graph_find(c->g, inputs[i])));
    for (size_t i = 0; i < c->g->nodes.n; i++) {
        if (c->g->nodes.data[i].phase == CVY_PHASE_FORWARD)
            CVY_TRY(add_op(c, &c->g->nodes.data[i]));
    }
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        CVY_TRY(add_port(c, outputs[i], cvy_graph_output(c->g, outputs[i])));
    return CVY_OK;
}

/* Part b ends with the node that makes the last gradient of bucket b. */
static int32_t part_end(const struct compiler *c, int32_t bucket) {
    int32_t end = -1;
    for (size_t i = 0; i < c->g->reducibles.n; i++) {
        int32_t node = c->g->values.data[c->g->reducibles.data[i].value].node;
        if (c->g->reducibles.data[i].bucket <= bucket && node > end)
            end = node;
    }
    return end;
}

static cvy_status add_backward(struct compiler *c) {
    int32_t next = 0;
    for (int32_t b = 0; b < c->g->n_buckets; b++) {
        int32_t end = b == c->g->n_buckets - 1 ? (int32_t)c->g->nodes.n - 1 : part_end(c, b);
        CVY_TRY(enter_segment(c, CVY_PHASE_BACKWARD, b));
        for (; next <= end; next++) {
            if (c->g->nodes.data[next].phase == CVY_PHASE_BACKWARD)
                CVY_TRY(add_op(c, &c->g->nodes.data[next]));
        }
    }
    return CVY_OK;
}

static cvy_status add_updates(struct compiler *c) {
    for (int32_t b = 0; b < c->g->n_buckets; b++) {
        CVY_TRY(enter_segment(c, CVY_PHASE_UPDATE, b));
        CVY_TRY(add_port(c, "hyper", cvy_graph_find(c->g, "hyper")));
        for (size_t i = 0; i < c->g->nodes.n; i++) {
            if (c->g->nodes.data[i].phase == CVY_PHASE_UPDATE && c->g->nodes.data[i].bucket == b)
                CVY_TRY(add_op(c, &c->g->nodes.data[i]));
        }
    }
    return CVY_OK;
}

/* Packed copies that no earlier graph wanted: remade after the update of their bucket, and at the start; those
   that evaluation alone wants, before an evaluation. */
static cvy_status add_refreshes(struct compiler *c) {
    for (size_t i = 0; i < c->g->nodes.n; i++) {
        const struct cvy_node *node = &c->g->nodes.data[i];
        struct cvy_packed *packed;
        if (node->phase != CVY_PHASE_REFRESH)
            continue;
        CVY_TRY(cvy_store_pack(&c->w->store, cvy_graph_value(c->g, node->out[0])->name,
                               value_bytes(c, node->out[0]), &packed));
        if (packed->has_refresh)
            continue;
        packed->has_refresh = true;
        CVY_TRY(enter_segment(c, CVY_PHASE_REFRESH, c->is_training ? 0 : 1));
        CVY_TRY(add_op(c, node));
        if (c->is_training && node->bucket >= 0) {
            CVY_TRY(enter_segment(c, CVY_PHASE_UPDATE, node->bucket));
            CVY_TRY(add_op(c, node));
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

static void max_into(size_t *into, size_t n) { *into = n > *into ? n : *into; }

static cvy_status cut_segments(struct compiler *c) {
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
    struct compiler c = {.w = worker, .is_training = is_training, .size = size};
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
