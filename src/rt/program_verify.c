/* Checks a program before anything is made from it: text may come from anywhere, and a wrong offset would corrupt
   memory silently. */
#include "rt/program_text.h"

#include <stdlib.h>

#define BROKEN(...) CVY_FAIL(CVY_ERR_DATA, "broken program: " __VA_ARGS__)

static size_t space_bytes(const struct cvy_program *p, enum cvy_space space) {
    switch (space) {
    case CVY_SPACE_PERSIST:
        return p->persist_bytes;
    case CVY_SPACE_PACKED:
        return p->packed_bytes;
    case CVY_SPACE_SUM:
        return p->sum_bytes;
    case CVY_SPACE_SLOT:
        return p->slot_bytes;
    case CVY_SPACE_ROWS:
    case CVY_SPACE_ROW:
        return p->rows_bytes;
    case CVY_SPACE_SCRATCH:
        return p->scratch_bytes;
    default:
        return 0;
    }
}

static cvy_status verify_operand(const struct cvy_program *p, const struct cvy_segment *s,
                                 const struct cvy_operand *operand) {
    const struct cvy_place *place = &operand->place;
    CVY_TRY(cvy_desc_check(&operand->spec.desc));
    if (place->space == CVY_SPACE_NONE)
        return operand->spec.is_absent ? CVY_OK
                                       : BROKEN("%s of %s is used but lies nowhere", operand->name, s->name);
    size_t n_bytes = space_bytes(p, place->space);
    size_t n_copies = place->space == CVY_SPACE_ROW ? (size_t)p->n_shards : 1;
    if (place->offset > n_bytes || place->n_bytes > (n_bytes - place->offset) / n_copies)
        return BROKEN("%s of %s ends behind its space of %zu bytes", operand->name, s->name, n_bytes);
    if (place->offset % CVY_ALIGN != 0)
        return BROKEN("%s of %s is not aligned to %d bytes", operand->name, s->name, CVY_ALIGN);
    bool is_plain = !operand->spec.layout && !operand->spec.is_private; /* else the backend knows its size */
    if (is_plain && place->n_bytes < cvy_desc_bytes(&operand->spec.desc))
        return BROKEN("%s of %s has %zu bytes, fewer than its shape needs", operand->name, s->name,
                      place->n_bytes);
    return CVY_OK;
}

static cvy_status verify_inputs(const struct cvy_segment *s, const struct cvy_prog_op *op,
                                struct cvy_desc *desc) {
    if (cvy_op_groups(op->op, op->n_in) < 0 || op->n_in > CVY_MAX_OPERANDS)
        return BROKEN("%s in %s: %s cannot have %d inputs", op->name, s->name, op->op->name, op->n_in);
    if (op->n_out != cvy_op_groups(op->op, op->n_in) * op->op->n_out)
        return BROKEN("%s in %s: %s does not make %d outputs", op->name, s->name, op->op->name, op->n_out);
    for (int i = 0; i < op->n_in; i++) {
        if (op->in[i] >= (int32_t)s->operands.n || (op->in[i] < 0 && !cvy_op_is_optional(op->op, i)))
            return BROKEN("%s in %s lacks its input \"%s\"", op->name, s->name, cvy_op_in_name(op->op, i));
        if (op->in[i] >= 0 && s->operands.data[op->in[i]].place.space == CVY_SPACE_NONE)
            return BROKEN("%s in %s reads %s, which lies nowhere", op->name, s->name,
                          s->operands.data[op->in[i]].name);
        desc[i] = op->in[i] < 0 ? CVY_DESC_ABSENT : s->operands.data[op->in[i]].spec.desc;
    }
    return CVY_OK;
}

static cvy_status verify_outputs(const struct cvy_segment *s, const struct cvy_prog_op *op,
                                 const struct cvy_desc *desc) {
    for (int o = 0; o < op->n_out; o++) {
        if (op->out[o] < 0)
            continue;
        if (op->out[o] >= (int32_t)s->operands.n)
            return BROKEN("%s in %s writes an operand that does not exist", op->name, s->name);
        const struct cvy_operand *out = &s->operands.data[op->out[o]];
        if (!cvy_desc_equal(&out->spec.desc, &desc[o]))
            return BROKEN("%s in %s has not the shape that %s makes", out->name, s->name, op->op->name);
    }
    return CVY_OK;
}

static cvy_status verify_op(const struct cvy_segment *s, const struct cvy_prog_op *op) {
    struct cvy_desc *in = NULL, *out = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(CVY_ALLOC(in, (size_t)op->n_in));
    CVY_TRY_OUT(verify_inputs(s, op, in));
    CVY_TRY_OUT(CVY_ALLOC(out, (size_t)op->n_out));
    CVY_TRY_OUT(cvy_attrs_check(op->op, op->attrs));
    CVY_TRY_OUT(cvy_op_infer(op->op, op->attrs, op->n_in, in, out));
    CVY_TRY_OUT(verify_outputs(s, op, out));
out:
    free(in);
    free(out);
    return status;
}

static cvy_status verify_segment(const struct cvy_program *p, const struct cvy_segment *s) {
    for (size_t i = 0; i < s->operands.n; i++)
        CVY_TRY(verify_operand(p, s, &s->operands.data[i]));
    for (size_t i = 0; i < s->ports.n; i++) {
        if (s->ports.data[i].operand < 0 || (size_t)s->ports.data[i].operand >= s->operands.n)
            return BROKEN("port %s of %s is no operand", s->ports.data[i].name, s->name);
    }
    for (size_t i = 0; i < s->ops.n; i++)
        CVY_TRY(verify_op(s, &s->ops.data[i]));
    return CVY_OK;
}

static bool has_segment(const struct cvy_program *p, const struct cvy_instr *i) {
    for (size_t k = 0; k < p->segments.n; k++) {
        const struct cvy_segment *s = &p->segments.data[k];
        if (s->phase == i->phase && s->stage == i->stage && s->part == i->part)
            return true;
    }
    return false;
}

/* -1 stands for "not used", which is right or wrong by kind; here it is enough that no index leads outside. */
static cvy_status verify_instr(const struct cvy_program *p, const char *schedule, const struct cvy_instr *i) {
    int32_t n_slots = p->n_slots > p->n_slots_split ? p->n_slots : p->n_slots_split;
    int32_t n_sums = p->n_sums > p->n_sums_split ? p->n_sums : p->n_sums_split;
    const char *name = cvy_instr_name(i->kind);
    if (i->slot >= n_slots)
        return BROKEN("%s in schedule %s takes slot %d of %d", name, schedule, i->slot, n_slots);
    if (i->sum >= n_sums || i->from >= n_sums)
        return BROKEN("%s in schedule %s takes sum %d of %d", name, schedule,
                      i->sum >= n_sums ? i->sum : i->from, n_sums);
    if (p->rows_bytes && i->kind == CVY_I_RUN && i->slot >= p->n_local_shards)
        return BROKEN("%s in schedule %s takes slot %d, where no row of %d shards belongs", name, schedule,
                      i->slot, p->n_local_shards);
    if (i->bucket >= (int32_t)p->buckets.n)
        return BROKEN("%s in schedule %s takes bucket %d of %zu", name, schedule, i->bucket, p->buckets.n);
    if (i->shard >= 0 && (i->shard < p->first_shard || i->shard >= p->first_shard + p->n_local_shards))
        return BROKEN("%s in schedule %s takes shard %d, which is another device's", name, schedule,
                      i->shard);
    bool needs_bucket = i->kind == CVY_I_ADD || i->kind == CVY_I_REDUCE || i->kind == CVY_I_WAIT ||
                        i->kind == CVY_I_ACCUMULATE || i->kind == CVY_I_UPDATE;
    bool is_message = i->kind == CVY_I_SEND || i->kind == CVY_I_RECV;
    bool needs_shard = i->kind == CVY_I_LOAD || i->kind == CVY_I_RUN || i->kind == CVY_I_RESULT || is_message;
    if ((needs_bucket && i->bucket < 0) || (needs_shard && (i->shard < 0 || i->slot < 0)) ||
        ((i->kind == CVY_I_RUN || i->kind == CVY_I_EXCHANGE || is_message) &&
         (i->stage < 0 || i->part < 0)) ||
        (i->kind == CVY_I_ADD && i->sum < 0) || (i->kind == CVY_I_ADD && i->from < 0))
        return BROKEN("%s in schedule %s does not say on what", name, schedule);
    if (i->stream < 0 || i->stream >= CVY_N_STREAMS)
        return BROKEN("%s in schedule %s runs in stream %d of %d", name, schedule, i->stream, CVY_N_STREAMS);
    if (i->kind == CVY_I_ACCUMULATE && p->total_bytes < p->sum_bytes)
        return BROKEN("%s in schedule %s: the total has %zu bytes, fewer than a sum's %zu", name, schedule,
                      p->total_bytes, p->sum_bytes);
    if ((i->kind == CVY_I_RUN || i->kind == CVY_I_EXCHANGE) && !has_segment(p, i))
        return BROKEN("%s in schedule %s: no segment of phase %d, stage %d, part %d", name, schedule,
                      (int)i->phase, i->stage, i->part);
    return CVY_OK;
}

/* A wait for an event that nothing above it records would wait for ever, or for nothing. */
static cvy_status verify_schedule(const struct cvy_program *p, int k) {
    const cvy_schedule *schedule = cvy_program_schedule(p, k);
    uint64_t recorded = 0;
    for (size_t n = 0; n < schedule->n; n++) {
        const struct cvy_instr *i = &schedule->data[n];
        uint64_t missing = i->wait_events & ~recorded;
        CVY_TRY(verify_instr(p, cvy_schedule_fields[k].name, i));
        if (missing)
            return BROKEN("%s in schedule %s waits for event e%d, which nothing above it records",
                          cvy_instr_name(i->kind), cvy_schedule_fields[k].name, __builtin_ctzll(missing));
        if (i->record_event >= 0)
            recorded |= UINT64_C(1) << i->record_event;
    }
    return CVY_OK;
}

static cvy_status verify_tables(const struct cvy_program *p) {
    if (p->n_stages < 1 || p->stage < 0 || p->stage >= p->n_stages || p->replica < 0 ||
        p->device != p->replica * p->n_stages + p->stage || p->device >= p->n_devices || p->first_shard < 0 ||
        p->n_local_shards < 0 || p->first_shard > p->n_shards - p->n_local_shards)
        return BROKEN(
            "device %d of %d cannot be stage %d of %d of replica %d and own %d shards from %d of %d",
            p->device, p->n_devices, p->stage, p->n_stages, p->replica, p->n_local_shards, p->first_shard,
            p->n_shards);
    for (size_t i = 0; i < p->buckets.n; i++) {
        const struct cvy_bucket *bucket = &p->buckets.data[i];
        if (bucket->offset > p->sum_bytes ||
            bucket->n_floats > (p->sum_bytes - bucket->offset) / sizeof(float))
            return BROKEN("bucket %zu ends behind its sum of %zu bytes", i, p->sum_bytes);
    }
    for (size_t i = 0; i < p->partials.n; i++) {
        const struct cvy_partial *partial = &p->partials.data[i];
        if (partial->device < 0 || partial->device >= p->n_devices || partial->first < 0 ||
            partial->first >= p->n_shards || partial->level < 0 || partial->level > 31 || partial->sum < 0)
            return BROKEN("partial sum %zu is no node of the tree over %d shards", i, p->n_shards);
    }
    return CVY_OK;
}

cvy_status cvy_program_verify(const struct cvy_program *p) {
    CVY_TRY(verify_tables(p));
    for (size_t i = 0; i < p->segments.n; i++)
        CVY_TRY(verify_segment(p, &p->segments.data[i]));
    for (int k = 0; k < CVY_N_SCHEDULES; k++)
        CVY_TRY(verify_schedule(p, k));
    return CVY_OK;
}
