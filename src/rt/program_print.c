/* Writes the text form of a program (see program_text.h): what `explain` shows. */
#include "graph/graph_text.h"
#include "rt/program_text.h"

#include <inttypes.h>
#include <string.h>

const char *const cvy_space_names[CVY_N_SPACES] = {
    [CVY_SPACE_NONE] = "nowhere", [CVY_SPACE_PERSIST] = "persist", [CVY_SPACE_PACKED] = "packed",
    [CVY_SPACE_SUM] = "sum",      [CVY_SPACE_TOTAL] = "total",     [CVY_SPACE_SLOT] = "slot",
    [CVY_SPACE_ROWS] = "rows",    [CVY_SPACE_ROW] = "row",         [CVY_SPACE_SCRATCH] = "scratch",
};
const struct cvy_field cvy_schedule_fields[CVY_N_SCHEDULES] = {
    {"train", offsetof(struct cvy_program, train)},
    {"accumulate", offsetof(struct cvy_program, accumulate)},
    {"forward", offsetof(struct cvy_program, forward)},
    {"backward", offsetof(struct cvy_program, backward)},
    {"update", offsetof(struct cvy_program, update)},
    {"evaluate", offsetof(struct cvy_program, evaluate)},
    {"start", offsetof(struct cvy_program, start)},
};
static void print_head(const struct cvy_program *p, struct cvy_text *out) {
    cvy_text_printf(out, "program device %d of %d, stage %d of %d of replica %d, %d shards from %d of %d\n",
                    p->device, p->n_devices, p->stage, p->n_stages, p->replica, p->n_local_shards,
                    p->first_shard, p->n_shards);
    cvy_text_printf(
        out, "memory persist %zu, packed %zu, sum %zu x %d (split %d), slot %zu x %d (split %d), scratch %zu",
        p->persist_bytes, p->packed_bytes, p->sum_bytes, p->n_sums, p->n_sums_split, p->slot_bytes,
        p->n_slots, p->n_slots_split, p->scratch_bytes);
    if (p->total_bytes)
        cvy_text_printf(out, ", total %zu", p->total_bytes);
    if (p->rows_bytes)
        cvy_text_printf(out, ", rows %zu", p->rows_bytes);
    cvy_text_printf(out, "\n");
    for (size_t i = 0; i < p->buckets.n; i++)
        cvy_text_printf(out, "bucket offset %zu floats %zu\n", p->buckets.data[i].offset,
                        p->buckets.data[i].n_floats);
    for (size_t i = 0; i < p->partials.n; i++) {
        const struct cvy_partial *partial = &p->partials.data[i];
        cvy_text_printf(out, "partial device %d first %d level %d sum %d\n", partial->device, partial->first,
                        partial->level, partial->sum);
    }
}

static void print_operand(const struct cvy_operand *operand, const struct cvy_backend *backend,
                          struct cvy_text *out) {
    cvy_text_printf(out, "  %s ", operand->name);
    cvy_desc_print(out, &operand->spec.desc);
    if (operand->spec.layout) {
        cvy_text_printf(out, "@");
        backend->layout_print(operand->spec.layout, out);
    }
    cvy_text_printf(out, " %s", cvy_space_names[operand->place.space]);
    if (operand->place.space != CVY_SPACE_NONE)
        cvy_text_printf(out, " %zu bytes %zu", operand->place.offset, operand->place.n_bytes);
    cvy_text_printf(out, "%s%s\n", operand->spec.is_private ? " private" : "",
                    operand->spec.is_absent ? " unread" : "");
}

/* The names of some of a segment's operands, separated by commas. */
static void print_names(const struct cvy_segment *segment, const int32_t *index, int n,
                        struct cvy_text *out) {
    for (int i = 0; i < n; i++)
        cvy_text_printf(out, "%s%s", i ? ", " : "",
                        index[i] < 0 ? "-" : segment->operands.data[index[i]].name);
}

static void print_op(const struct cvy_segment *segment, const struct cvy_prog_op *op, struct cvy_text *out) {
    cvy_text_printf(out, "  ");
    print_names(segment, op->out, op->n_out, out);
    cvy_text_printf(out, "%s= %s(", op->n_out ? " " : "", op->op->name);
    print_names(segment, op->in, op->n_in, out);
    cvy_text_printf(out, ")");
    struct cvy_text attrs = {0};
    cvy_attrs_print(op->op, op->attrs, &attrs);
    if (attrs.n > 0)
        cvy_text_printf(out, " %s", attrs.data);
    cvy_text_free(&attrs);
    const char *first = op->n_out > 0 && op->out[0] >= 0 ? segment->operands.data[op->out[0]].name : NULL;
    cvy_text_printf(out, "  ; ");
    if (!cvy_layer_is_implied(op->op, op->name, first))
        cvy_text_printf(out, "layer %s, ", op->name);
    cvy_text_printf(out, "id %u", op->id);
    if (op->phase != segment->phase)
        cvy_text_printf(out, ", %s", cvy_phase_names[op->phase]);
    if (op->algorithm != 0)
        cvy_text_printf(out, ", algorithm %d", op->algorithm);
    cvy_text_printf(out, "\n");
}

static void print_segment(const struct cvy_segment *s, const struct cvy_backend *backend,
                          struct cvy_text *out) {
    cvy_text_printf(out, "segment %s %s %s", s->name, cvy_phase_names[s->phase],
                    s->is_training ? "train" : "evaluate");
    if (s->stage >= 0)
        cvy_text_printf(out, " stage %d", s->stage);
    if (s->part >= 0)
        cvy_text_printf(out, " part %d", s->part);
    cvy_text_printf(out, " shard %" PRId64 " rule %" PRId64 "\n", s->shard_size, s->rule_batch);
    for (size_t i = 0; i < s->operands.n; i++)
        print_operand(&s->operands.data[i], backend, out);
    for (size_t i = 0; i < s->ports.n; i++)
        cvy_text_printf(out, "  port %s = %s\n", s->ports.data[i].name,
                        s->operands.data[s->ports.data[i].operand].name);
    for (size_t i = 0; i < s->ops.n; i++)
        print_op(s, &s->ops.data[i], out);
}

static void print_schedule(const struct cvy_program *program, int k, struct cvy_text *out) {
    const cvy_schedule *schedule = cvy_program_schedule(program, k);
    if (schedule->n > 0)
        cvy_text_printf(out, "schedule %s\n", cvy_schedule_fields[k].name);
    for (size_t i = 0; i < schedule->n; i++)
        cvy_instr_print(&schedule->data[i], out);
}

cvy_status cvy_program_print(const struct cvy_program *program, const struct cvy_backend *backend,
                             struct cvy_text *out) {
    print_head(program, out);
    for (size_t i = 0; i < program->segments.n; i++)
        print_segment(&program->segments.data[i], backend, out);
    for (int k = 0; k < CVY_N_SCHEDULES; k++)
        print_schedule(program, k, out);
    return out->status;
}
