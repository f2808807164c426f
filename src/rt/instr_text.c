/* One instruction of a schedule as a line of text, both ways (see program_text.h). */
#include "rt/program_text.h"

#include <string.h>

/* All int32_t, -1 where not used. */
static const struct cvy_field fields[] = {
    {"stage", offsetof(struct cvy_instr, stage)},   {"part", offsetof(struct cvy_instr, part)},
    {"shard", offsetof(struct cvy_instr, shard)},   {"slot", offsetof(struct cvy_instr, slot)},
    {"sum", offsetof(struct cvy_instr, sum)},       {"from", offsetof(struct cvy_instr, from)},
    {"bucket", offsetof(struct cvy_instr, bucket)},
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

static int32_t *field(struct cvy_instr *instr, int k) {
    return (int32_t *)((char *)instr + fields[k].offset);
}

/* Of a run, by phase. */
static const char letters[] = {[CVY_PHASE_FORWARD] = 'F',
                               [CVY_PHASE_BACKWARD] = 'B',
                               [CVY_PHASE_UPDATE] = 'U',
                               [CVY_PHASE_REFRESH] = 'R'};

const char *cvy_instr_name(enum cvy_instr_kind kind) {
    static const char *const names[CVY_N_INSTR] = {
        [CVY_I_LOAD] = "load",       [CVY_I_RUN] = "run",       [CVY_I_EXCHANGE] = "exchange",
        [CVY_I_ADD] = "add",         [CVY_I_SEND] = "send",     [CVY_I_RECV] = "recv",
        [CVY_I_REDUCE] = "reduce",   [CVY_I_WAIT] = "wait",     [CVY_I_ACCUMULATE] = "accumulate",
        [CVY_I_CHECK] = "check",     [CVY_I_FINITE] = "finite", [CVY_I_CLIP] = "clip",
        [CVY_I_UPDATE] = "update",   [CVY_I_RESULT] = "result", [CVY_I_BROADCAST] = "broadcast",
        [CVY_I_REFRESH] = "refresh",
    };
    return names[kind];
}

/* Of a run or an exchange: which segment. Of a message: phase and stage of the segment that it comes from or goes to,
   and as part the other stage. */
static bool has_phase(enum cvy_instr_kind kind) {
    return kind == CVY_I_RUN || kind == CVY_I_EXCHANGE || kind == CVY_I_SEND || kind == CVY_I_RECV;
}

/* "F0", "B0.1": letter of the phase, stage, part; a forward part 0 goes without saying. */
static void print_run(const struct cvy_instr *i, struct cvy_text *out) {
    cvy_text_printf(out, " %c%d", letters[i->phase], i->stage);
    if (i->part != 0 || i->phase != CVY_PHASE_FORWARD)
        cvy_text_printf(out, ".%d", i->part);
}

void cvy_instr_print(const struct cvy_instr *instr, struct cvy_text *out) {
    struct cvy_instr copy = *instr;
    cvy_text_printf(out, "  %s", cvy_instr_name(instr->kind));
    if (has_phase(instr->kind)) {
        print_run(instr, out);
        copy.stage = copy.part = -1;
    }
    for (int k = 0; k < N_FIELDS; k++) {
        int32_t value = *field(&copy, k);
        if (value >= 0)
            cvy_text_printf(out, " %s %d", fields[k].name, value);
    }
    if (instr->wait_events)
        cvy_text_printf(out, " wait");
    for (int e = 0; e < 64; e++) {
        if (instr->wait_events >> e & 1)
            cvy_text_printf(out, " e%d", e);
    }
    if (instr->record_event >= 0)
        cvy_text_printf(out, " record e%d", instr->record_event);
    if (instr->stream != 0)
        cvy_text_printf(out, " stream %d", instr->stream);
    cvy_text_printf(out, "\n");
}

/* Digits at *at, which moves behind them. False: none, or too many. */
static bool parse_index(const char **at, int32_t *out) {
    const char *start = *at;
    int64_t value = 0;
    for (; **at >= '0' && **at <= '9' && value <= INT32_MAX; (*at)++)
        value = value * 10 + (**at - '0');
    *out = (int32_t)value;
    return *at > start && value <= INT32_MAX;
}

static cvy_status parse_run(struct cvy_scan *scan, struct cvy_instr *instr) {
    const char *word = cvy_scan_word(scan), *at = word;
    const char *letter = *word ? memchr(letters, *at++, sizeof letters) : NULL;
    bool is_run = letter && parse_index(&at, &instr->stage);
    instr->part = 0;
    if (is_run && *at == '.') {
        at++;
        is_run = parse_index(&at, &instr->part);
    }
    if (!is_run || *at)
        return CVY_FAIL(CVY_ERR_DATA, "\"%.60s\" names no segment; one looks like B0.1", word);
    instr->phase = (enum cvy_phase)(letter - letters);
    return CVY_OK;
}

/* "e5" */
static bool accept_event(struct cvy_scan *scan, int32_t *out) {
    int64_t e;
    const char *word = cvy_scan_peek(scan);
    if (*word != 'e' || !cvy_parse_i64(word + 1, &e) || e < 0 || e > 63)
        return false;
    cvy_scan_word(scan);
    *out = (int32_t)e;
    return true;
}

cvy_status cvy_instr_parse(struct cvy_scan *scan, struct cvy_instr *out) {
    struct cvy_instr instr = {.record_event = -1};
    const char *kinds[CVY_N_INSTR];
    int kind;
    int32_t event;
    for (int k = 0; k < N_FIELDS; k++)
        *field(&instr, k) = -1;
    for (int k = 0; k < CVY_N_INSTR; k++)
        kinds[k] = cvy_instr_name((enum cvy_instr_kind)k);
    CVY_TRY(cvy_scan_choice(scan, kinds, CVY_N_INSTR, &kind));
    instr.kind = (enum cvy_instr_kind)kind;
    if (has_phase(instr.kind))
        CVY_TRY(parse_run(scan, &instr));
    for (int k = 0; k < N_FIELDS; k++) {
        if (cvy_scan_accept(scan, fields[k].name))
            CVY_TRY(cvy_scan_i32(scan, 0, field(&instr, k)));
    }
    if (cvy_scan_accept(scan, "wait")) {
        while (accept_event(scan, &event))
            instr.wait_events |= UINT64_C(1) << event;
    }
    if (cvy_scan_accept(scan, "record") && !accept_event(scan, &instr.record_event))
        return CVY_FAIL(CVY_ERR_DATA, "\"%.60s\" is no event; one looks like e5", cvy_scan_peek(scan));
    if (cvy_scan_accept(scan, "stream"))
        CVY_TRY(cvy_scan_i32(scan, 0, &instr.stream));
    *out = instr;
    return CVY_OK;
}
