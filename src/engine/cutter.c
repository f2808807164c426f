/* The cutter: see cutter.h. */
#include "engine/cutter.h"

#include <inttypes.h>
#include <string.h>

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
        return cvy_pool_printf(pool, out, "B%d.%d/%" PRId64, s->stage, s->part, s->shard_size);
    if (s->part > 0)
        return cvy_pool_printf(pool, out, "F%d.%d/%" PRId64, s->stage, s->part, s->shard_size);
    return cvy_pool_printf(pool, out, "%c%d/%" PRId64, s->is_training ? 'F' : 'E', s->stage, s->shard_size);
}

/* Starts filling the segment, a new one where there is none. */
cvy_status cvy_cutter_enter(struct cvy_cutter *c, enum cvy_phase phase, int32_t part) {
    bool is_sized = phase == CVY_PHASE_FORWARD || phase == CVY_PHASE_BACKWARD;
    bool is_training = phase == CVY_PHASE_UPDATE || c->is_training;
    struct cvy_program *program = c->w->program;
    struct cvy_segment *s = cvy_program_segment(program, phase, is_training, part, is_sized ? c->size : 0);
    if (!s) {
        struct cvy_segment fresh = {.phase = phase,
                                    .is_training = is_training,
                                    .stage = program->stage,
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

static const struct cvy_node *producer(const struct cvy_cutter *c, cvy_value v) {
    int32_t node = c->g->values.data[v].node;
    return node < 0 ? NULL : &c->g->nodes.data[node];
}

size_t cvy_cutter_bytes(const struct cvy_cutter *c, cvy_value v) {
    const struct cvy_value_info *info = &c->g->values.data[v];
    return c->w->device->backend->layout_bytes(info->layout, &info->desc);
}

static cvy_status place_of(struct cvy_cutter *c, cvy_value v, struct cvy_place *out) {
    const struct cvy_value_info *info = &c->g->values.data[v];
    const struct cvy_node *node = producer(c, v);
    struct cvy_packed *packed;
    if (node && node->phase == CVY_PHASE_UPDATE) /* the new value of a stored one */
        return place_of(c, node->in[cvy_op_aliased_input(node->op, info->output)], out);
    if (node && node->phase == CVY_PHASE_REFRESH) {
        CVY_TRY(cvy_store_pack(&c->w->store, info->name, cvy_cutter_bytes(c, v), &packed));
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
            *out = (struct cvy_place){CVY_SPACE_SUM, c->w->reducible_offset[i], cvy_cutter_bytes(c, v)};
            return CVY_OK;
        }
    }
    if (cvy_rows_place(c->g, v, out))
        return CVY_OK;
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
static cvy_status operand_of(struct cvy_cutter *c, cvy_value v, int32_t *out) {
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

cvy_status cvy_cutter_add_op(struct cvy_cutter *c, const struct cvy_node *node) {
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

cvy_status cvy_cutter_add_port(struct cvy_cutter *c, const char *name, cvy_value v) {
    struct cvy_port port = {.name = name};
    if (v == CVY_NONE)
        return CVY_OK;
    CVY_TRY(operand_of(c, v, &port.operand));
    return cvy_vec_push(&c->w->program->segments.data[c->segment].ports, port);
}
