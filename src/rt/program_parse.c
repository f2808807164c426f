/* Reads the text form of a program (see program_text.h). Names of operands are looked up per segment; layouts are
   found by the device. The result is verified, so that a text that lies about places or shapes is refused. */
#include "graph/graph_text.h"
#include "graph/scan.h"
#include "rt/program_text.h"

#include <stdlib.h>
#include <string.h>

struct reader {
    struct cvy_scan scan;
    struct cvy_program *program;
    struct cvy_device *device;
    struct cvy_segment *segment; /* the newest, or NULL before the first */
    struct cvy_names operands;   /* of that segment */
    cvy_schedule *schedule;      /* the newest, or NULL */
};

/* "WORD N" of an int32 that is not negative. */
static cvy_status parse_count(struct cvy_scan *scan, const char *word, int32_t *out) {
    CVY_TRY(cvy_scan_expect(scan, word));
    return cvy_scan_i32(scan, 0, out);
}

static cvy_status parse_bytes(struct cvy_scan *scan, const char *word, size_t *out) {
    CVY_TRY(cvy_scan_expect(scan, word));
    return cvy_scan_size(scan, out);
}

static cvy_status parse_program_line(struct reader *r) {
    struct cvy_program *p = r->program;
    CVY_TRY(cvy_scan_expect(&r->scan, "program"));
    CVY_TRY(parse_count(&r->scan, "device", &p->device));
    CVY_TRY(parse_count(&r->scan, "of", &p->n_devices));
    CVY_TRY(cvy_scan_expect(&r->scan, ","));
    CVY_TRY(parse_count(&r->scan, "stage", &p->stage));
    CVY_TRY(parse_count(&r->scan, "of", &p->n_stages));
    CVY_TRY(cvy_scan_expect(&r->scan, "of"));
    CVY_TRY(parse_count(&r->scan, "replica", &p->replica));
    CVY_TRY(parse_count(&r->scan, ",", &p->n_local_shards));
    CVY_TRY(cvy_scan_expect(&r->scan, "shards"));
    CVY_TRY(parse_count(&r->scan, "from", &p->first_shard));
    CVY_TRY(parse_count(&r->scan, "of", &p->n_shards));
    return cvy_scan_end(&r->scan);
}

/* "BYTES x N (split M)," */
static cvy_status parse_copies(struct cvy_scan *scan, int32_t *n, int32_t *n_split) {
    CVY_TRY(parse_count(scan, "x", n));
    CVY_TRY(cvy_scan_expect(scan, "("));
    CVY_TRY(parse_count(scan, "split", n_split));
    CVY_TRY(cvy_scan_expect(scan, ")"));
    return cvy_scan_expect(scan, ",");
}

static cvy_status parse_memory(struct reader *r) {
    struct cvy_program *p = r->program;
    CVY_TRY(parse_bytes(&r->scan, "persist", &p->persist_bytes));
    CVY_TRY(cvy_scan_expect(&r->scan, ","));
    CVY_TRY(parse_bytes(&r->scan, "packed", &p->packed_bytes));
    CVY_TRY(cvy_scan_expect(&r->scan, ","));
    CVY_TRY(parse_bytes(&r->scan, "sum", &p->sum_bytes));
    CVY_TRY(parse_copies(&r->scan, &p->n_sums, &p->n_sums_split));
    CVY_TRY(parse_bytes(&r->scan, "slot", &p->slot_bytes));
    CVY_TRY(parse_copies(&r->scan, &p->n_slots, &p->n_slots_split));
    CVY_TRY(parse_bytes(&r->scan, "scratch", &p->scratch_bytes));
    while (cvy_scan_accept(&r->scan, ",")) {
        bool is_total = strcmp(cvy_scan_peek(&r->scan), "total") == 0;
        CVY_TRY(
            parse_bytes(&r->scan, is_total ? "total" : "rows", is_total ? &p->total_bytes : &p->rows_bytes));
    }
    return CVY_OK;
}

static cvy_status parse_bucket(struct reader *r) {
    struct cvy_bucket bucket;
    CVY_TRY(parse_bytes(&r->scan, "offset", &bucket.offset));
    CVY_TRY(parse_bytes(&r->scan, "floats", &bucket.n_floats));
    return cvy_vec_push(&r->program->buckets, bucket);
}

static cvy_status parse_partial(struct reader *r) {
    struct cvy_partial partial;
    CVY_TRY(parse_count(&r->scan, "device", &partial.device));
    CVY_TRY(parse_count(&r->scan, "first", &partial.first));
    CVY_TRY(parse_count(&r->scan, "level", &partial.level));
    CVY_TRY(parse_count(&r->scan, "sum", &partial.sum));
    return cvy_vec_push(&r->program->partials, partial);
}

/* A word, kept in the program's pool. */
static cvy_status parse_kept(struct reader *r, const char **out) {
    const char *word;
    char *copy;
    CVY_TRY(cvy_scan_name(&r->scan, &word));
    if (strpbrk(word, "[]")) /* a comma that is printed behind it would belong to it */
        return CVY_FAIL(CVY_ERR_DATA, "the name \"%.60s\" has a bracket in it", word);
    CVY_TRY(cvy_pool_strdup(&r->program->pool, word, &copy));
    *out = copy;
    return CVY_OK;
}

static cvy_status parse_segment(struct reader *r) {
    static const char *const modes[] = {"evaluate", "train"};
    struct cvy_segment segment = {.stage = -1, .part = -1};
    int phase, mode;
    CVY_TRY(parse_kept(r, &segment.name));
    CVY_TRY(cvy_scan_choice(&r->scan, cvy_phase_names, CVY_PHASE_REFRESH + 1, &phase));
    CVY_TRY(cvy_scan_choice(&r->scan, modes, 2, &mode));
    segment.phase = (enum cvy_phase)phase;
    segment.is_training = mode;
    if (cvy_scan_accept(&r->scan, "stage"))
        CVY_TRY(cvy_scan_i32(&r->scan, 0, &segment.stage));
    if (cvy_scan_accept(&r->scan, "part"))
        CVY_TRY(cvy_scan_i32(&r->scan, 0, &segment.part));
    CVY_TRY(cvy_scan_expect(&r->scan, "shard"));
    CVY_TRY(cvy_scan_int(&r->scan, 0, INT64_MAX, &segment.shard_size));
    CVY_TRY(cvy_scan_expect(&r->scan, "rule"));
    CVY_TRY(cvy_scan_int(&r->scan, 0, INT64_MAX, &segment.rule_batch));
    CVY_TRY(cvy_vec_push(&r->program->segments, segment));
    r->segment = &r->program->segments.data[r->program->segments.n - 1];
    r->schedule = NULL;
    cvy_names_free(&r->operands);
    return CVY_OK;
}

/* "f32[6,1,5,5]@LAYOUT" */
static cvy_status parse_spec(struct reader *r, struct cvy_operand_spec *out) {
    const char *word;
    CVY_TRY(cvy_scan_name(&r->scan, &word));
    size_t n = strcspn(word, "@");
    char text[160] = "";
    if (n < sizeof text)
        memcpy(text, word, n);
    CVY_TRY(cvy_desc_parse(text, &out->desc));
    if (word[n] && !r->device->backend->layout_find(r->device, word + n + 1, &out->layout))
        return CVY_FAIL(CVY_ERR_DATA, "%s knows no layout called \"%.80s\"", r->device->name, word + n + 1);
    return CVY_OK;
}

static cvy_status parse_operand(struct reader *r) {
    struct cvy_operand operand = {.spec.is_fixed = true}; /* as in every program: layouts are chosen by now */
    int space;
    CVY_TRY(parse_kept(r, &operand.name));
    CVY_TRY(parse_spec(r, &operand.spec));
    CVY_TRY(cvy_scan_choice(&r->scan, cvy_space_names, CVY_N_SPACES, &space));
    operand.place.space = (enum cvy_space)space;
    if (space != CVY_SPACE_NONE) {
        CVY_TRY(cvy_scan_size(&r->scan, &operand.place.offset));
        CVY_TRY(parse_bytes(&r->scan, "bytes", &operand.place.n_bytes));
    }
    operand.spec.is_private = cvy_scan_accept(&r->scan, "private");
    operand.spec.is_absent = cvy_scan_accept(&r->scan, "unread");
    if (cvy_names_find(&r->operands, operand.name) >= 0)
        return CVY_FAIL(CVY_ERR_DATA, "segment %s has two operands called %s", r->segment->name,
                        operand.name);
    CVY_TRY(cvy_names_add(&r->operands, operand.name, (int32_t)r->segment->operands.n));
    return cvy_vec_push(&r->segment->operands, operand);
}

static cvy_status parse_operand_name(struct reader *r, int32_t *out) {
    const char *name;
    CVY_TRY(cvy_scan_name(&r->scan, &name));
    *out = cvy_names_find(&r->operands, name);
    return *out < 0
               ? CVY_FAIL(CVY_ERR_DATA, "segment %s has no operand called \"%.60s\"", r->segment->name, name)
               : CVY_OK;
}

/* "a, -, b" up to and with the word `end`: indices in the program's pool. */
static cvy_status parse_indices(struct reader *r, const char *end, int *n, int32_t **out) {
    CVY_VEC(int32_t) list = {0};
    cvy_status status = CVY_OK;
    while (!cvy_scan_accept(&r->scan, end)) {
        int32_t index = -1;
        if (list.n > 0)
            CVY_TRY_OUT(cvy_scan_expect(&r->scan, ","));
        if (!cvy_scan_accept(&r->scan, "-"))
            CVY_TRY_OUT(parse_operand_name(r, &index));
        CVY_TRY_OUT(cvy_vec_push(&list, index));
    }
    *n = (int)list.n;
    CVY_TRY_OUT(cvy_pool_copy(&r->program->pool, list.data, list.n * sizeof *list.data, (void **)out));
out:
    cvy_vec_free(&list);
    return status;
}

static cvy_status parse_op_notes(struct reader *r, struct cvy_prog_op *op) {
    CVY_TRY(cvy_scan_expect(&r->scan, ";"));
    do {
        int phase;
        int64_t id;
        if (cvy_scan_accept(&r->scan, "layer")) {
            CVY_TRY(parse_kept(r, &op->name));
        } else if (cvy_scan_accept(&r->scan, "id")) {
            CVY_TRY(cvy_scan_int(&r->scan, 0, UINT32_MAX, &id));
            op->id = (uint32_t)id;
        } else if (cvy_scan_accept(&r->scan, "algorithm")) {
            CVY_TRY(cvy_scan_i32(&r->scan, INT32_MIN, &op->algorithm));
        } else {
            CVY_TRY(cvy_scan_choice(&r->scan, cvy_phase_names, CVY_PHASE_REFRESH + 1, &phase));
            op->phase = (enum cvy_phase)phase;
        }
    } while (cvy_scan_accept(&r->scan, ","));
    return CVY_OK;
}

/* "OUT, OUT = OP(IN, -) NAME=VALUE  ; id 3" */
static cvy_status parse_op(struct reader *r) {
    struct cvy_prog_op op = {.phase = r->segment->phase};
    const char *name;
    void *attrs;
    CVY_TRY(parse_indices(r, "=", &op.n_out, &op.out));
    CVY_TRY(cvy_scan_name(&r->scan, &name));
    op.op = cvy_op_find(name);
    if (!op.op)
        return CVY_FAIL(CVY_ERR_DATA, "there is no operator \"%.60s\"", name);
    CVY_TRY(cvy_scan_expect(&r->scan, "("));
    CVY_TRY(parse_indices(r, ")", &op.n_in, &op.in));
    CVY_TRY(cvy_pool_alloc(&r->program->pool, op.op->attrs_size, &attrs));
    cvy_attrs_default(op.op, attrs);
    op.attrs = attrs;
    while (*cvy_scan_peek(&r->scan) && strcmp(cvy_scan_peek(&r->scan), ";") != 0)
        CVY_TRY(cvy_attrs_parse(op.op, cvy_scan_word(&r->scan), attrs));
    CVY_TRY(parse_op_notes(r, &op));
    if (!op.name) {
        const char *first = op.n_out > 0 && op.out[0] >= 0 ? r->segment->operands.data[op.out[0]].name : NULL;
        CVY_TRY(cvy_layer_imply(op.op, first, &r->program->pool, &op.name));
    }
    return cvy_vec_push(&r->segment->ops, op);
}

static cvy_status parse_port(struct reader *r) {
    struct cvy_port port;
    CVY_TRY(parse_kept(r, &port.name));
    CVY_TRY(cvy_scan_expect(&r->scan, "="));
    CVY_TRY(parse_operand_name(r, &port.operand));
    return cvy_vec_push(&r->segment->ports, port);
}

static cvy_status parse_schedule(struct reader *r) {
    for (int k = 0; k < CVY_N_SCHEDULES; k++) {
        if (cvy_scan_accept(&r->scan, cvy_schedule_fields[k].name)) {
            r->schedule = cvy_program_schedule(r->program, k);
            return CVY_OK;
        }
    }
    return CVY_FAIL(CVY_ERR_DATA, "there is no schedule \"%.60s\"", cvy_scan_peek(&r->scan));
}

/* Which of a segment's lines it is shows in the second word: "NAME DESC", "OUT = …", "OUT, …", "= …". */
static cvy_status parse_body_line(struct reader *r, bool *is_body) {
    const char *first = cvy_scan_peek(&r->scan), *second = cvy_scan_peek_second(&r->scan);
    *is_body = true;
    if (strcmp(first, "=") == 0 || strcmp(second, "=") == 0 || strcmp(second, ",") == 0)
        return parse_op(r);
    if (strchr(second, '['))
        return parse_operand(r);
    if (cvy_scan_accept(&r->scan, "port"))
        return parse_port(r);
    *is_body = false;
    return CVY_OK;
}

static cvy_status parse_line(struct reader *r) {
    static const struct {
        const char *keyword;
        cvy_status (*parse)(struct reader *r);
    } lines[] = {{"memory", parse_memory},
                 {"bucket", parse_bucket},
                 {"partial", parse_partial},
                 {"segment", parse_segment},
                 {"schedule", parse_schedule}};
    bool is_body = false;
    if (r->segment && !r->schedule)
        CVY_TRY(parse_body_line(r, &is_body));
    for (size_t i = 0; i < sizeof lines / sizeof *lines && !is_body; i++) {
        if (cvy_scan_accept(&r->scan, lines[i].keyword)) {
            CVY_TRY(lines[i].parse(r));
            return cvy_scan_end(&r->scan);
        }
    }
    if (!is_body && !r->schedule)
        return CVY_FAIL(CVY_ERR_DATA, "\"%.60s\" starts no line of a program", cvy_scan_peek(&r->scan));
    if (!is_body) {
        struct cvy_instr instr;
        CVY_TRY(cvy_instr_parse(&r->scan, &instr));
        CVY_TRY(cvy_vec_push(r->schedule, instr));
    }
    return cvy_scan_end(&r->scan);
}

static cvy_status parse_all(struct reader *r) {
    cvy_status status = CVY_OK;
    cvy_scan_line(&r->scan);
    CVY_TRY_OUT(parse_program_line(r));
    while (cvy_scan_line(&r->scan))
        CVY_TRY_OUT(parse_line(r));
    return cvy_program_verify(r->program);
out:
    return cvy_scan_fail(&r->scan, status);
}

cvy_status cvy_program_parse(const char *text, struct cvy_device *device, struct cvy_program **out) {
    struct reader r = {.device = device};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_scan_open(&r.scan, text));
    CVY_TRY_OUT(CVY_ALLOC(r.program, 1));
    CVY_TRY_OUT(parse_all(&r));
    *out = r.program;
    r.program = NULL;
out:
    cvy_program_free(r.program);
    cvy_names_free(&r.operands);
    cvy_scan_close(&r.scan);
    return status;
}
