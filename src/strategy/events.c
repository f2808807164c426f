/* events: what makes a schedule right on a device with several in-order streams. The list is written as if its
   instructions ran one after the other; on such a device those of different streams run at the same time, unless
   one waits for an event that the other records.

   Each instruction reads and writes resources: slots, buckets of sums, stored values, packed copies. Wherever two in
   different streams touch the same resource, and one of them writes, the later one must wait for the earlier one. A
   stream runs in order, so a wait for one position covers all before it: per stream the newest awaited position of
   the other one is remembered, and a wait that would say nothing new is left out. Hence each event is awaited once.
   When a schedule begins, everything before it is complete (the executor sees to that).

   Event numbers. A wait means the newest record of its event that stands before it in the list, as on a CUDA stream;
   therefore a number is free again behind its wait. When all numbers are taken, two waits for the same stream share
   the later record: right, since it covers the earlier one, and never a cycle, since waits look backward only. */
#include "base/mem.h"
#include "strategy/strategy.h"

#include <stdlib.h>
#include <string.h>

enum {
    PERSIST,
    PACKED,
    TOTAL,
    ROWS,
    N_SINGLE
};                  /* resources that there is one of; behind them slots, then buckets of sums */
enum { NEVER = 0 }; /* positions count from 1 */

struct resource { /* newest positions, by stream */
    int32_t written[CVY_N_STREAMS], touched[CVY_N_STREAMS];
};

struct sweep {
    const struct cvy_program *p;
    cvy_schedule *schedule;
    int32_t n, n_slots, n_sums, n_buckets, first_bucket;
    bool has_rows; /* runs read and write rows */
    struct resource *resources;
    int32_t n_resources;
    int32_t *awaits;     /* per position: the one that it waits for, or NEVER */
    int32_t *awaited_by; /* the reverse */
    int32_t *stand_in;   /* per position: the one that is awaited in its place; usually itself */
    /* the instruction in hand */
    int32_t position, stream, need[CVY_N_STREAMS];
};

/* ---- accesses ---------------------------------------------------------------------------------------- */

/* What the instruction in hand must wait for before it touches the resource. */
static void meet(struct sweep *s, int32_t resource, bool is_write) {
    const struct resource *r = &s->resources[resource];
    for (int32_t t = 0; t < CVY_N_STREAMS; t++) {
        int32_t before = is_write ? r->touched[t] : r->written[t];
        if (t != s->stream && before > s->need[t])
            s->need[t] = before;
    }
}

static void touch(struct sweep *s, int32_t resource, bool is_write) {
    struct resource *r = &s->resources[resource];
    meet(s, resource, is_write);
    r->touched[s->stream] = s->position;
    if (is_write)
        r->written[s->stream] = s->position;
}

static int32_t slot_at(int32_t slot) { return N_SINGLE + slot; }

static int32_t bucket_at(const struct sweep *s, int32_t sum, int32_t bucket) {
    return N_SINGLE + s->n_slots + sum * s->n_buckets + bucket;
}

static void touch_slot(struct sweep *s, int32_t slot, bool is_write) { touch(s, slot_at(slot), is_write); }

static void touch_bucket(struct sweep *s, int32_t sum, int32_t bucket, bool is_write) {
    touch(s, bucket_at(s, sum, bucket), is_write);
}

static void fill_slot(struct sweep *s, const struct cvy_instr *i) { touch_slot(s, i->slot, true); }
static void send_slot(struct sweep *s, const struct cvy_instr *i) { touch_slot(s, i->slot, false); }

/* A part of a backward pass writes into the bucket that it works on, and may already write into later ones. */
static int32_t first_written(const struct cvy_instr *i) {
    if (i->phase != CVY_PHASE_BACKWARD)
        return 0;
    return i->bucket >= 0 ? i->bucket : i->part;
}

static void touch_run(struct sweep *s, const struct cvy_instr *i) {
    touch_slot(s, i->slot, true);
    touch(s, PERSIST, false);
    touch(s, PACKED, false);
    if (s->has_rows)
        touch(s, ROWS, true);
    for (int32_t b = first_written(i); i->sum >= 0 && b < s->n_buckets; b++)
        touch_bucket(s, i->sum, b, true);
}

static void touch_exchange(struct sweep *s, const struct cvy_instr *i) {
    (void)i;
    touch(s, ROWS, true);
}

static void touch_add(struct sweep *s, const struct cvy_instr *i) {
    touch_bucket(s, i->from, i->bucket, false);
    touch_bucket(s, i->sum, i->bucket, true);
}

/* All partial sums go in, wherever they lie. */
static void touch_reduce(struct sweep *s, const struct cvy_instr *i) {
    for (int32_t k = 0; k < s->n_sums; k++)
        touch_bucket(s, k, i->bucket, false);
    if (i->sum >= 0)
        touch_bucket(s, i->sum, i->bucket, true);
}

/* Does the compute stream go back to this bucket before it waits for another? Else who needs it waits itself. */
static bool is_needed_next(const struct sweep *s, int32_t bucket) {
    for (int32_t k = s->position; k < s->n && s->schedule->data[k].kind != CVY_I_WAIT; k++) {
        const struct cvy_instr *i = &s->schedule->data[k];
        bool is_check = i->kind == CVY_I_CHECK && bucket == s->first_bucket;
        bool is_run = i->kind == CVY_I_RUN && i->sum >= 0 && first_written(i) <= bucket;
        bool is_other = (i->kind == CVY_I_ADD || i->kind == CVY_I_ACCUMULATE || i->kind == CVY_I_UPDATE) &&
                        i->bucket == bucket;
        if (is_check || is_run || is_other || i->kind == CVY_I_FINITE || i->kind == CVY_I_CLIP)
            return true;
    }
    return false;
}

/* Where the compute stream meets the reduced sum; what nobody needs is complete when the schedule is. */
static void touch_wait(struct sweep *s, const struct cvy_instr *i) {
    if (is_needed_next(s, i->bucket))
        touch_bucket(s, 0, i->bucket, false);
}

/* What goes to the host leaves no trace: the host waits for it before it enqueues anything else. */
static void touch_result(struct sweep *s, const struct cvy_instr *i) { meet(s, slot_at(i->slot), false); }

/* The loss lies in the stage's first bucket. */
static void touch_check(struct sweep *s, const struct cvy_instr *i) {
    (void)i;
    if (s->n_buckets)
        meet(s, bucket_at(s, 0, s->first_bucket), false);
}

/* All that is reduced, and by the host too. */
static void touch_finite(struct sweep *s, const struct cvy_instr *i) {
    (void)i;
    for (int32_t b = 0; b < s->n_buckets; b++)
        meet(s, bucket_at(s, 0, b), false);
}

/* All that is reduced, which may be scaled down. */
static void touch_clip(struct sweep *s, const struct cvy_instr *i) {
    (void)i;
    for (int32_t b = 0; b < s->n_buckets; b++)
        touch_bucket(s, 0, b, true);
}

static void touch_accumulate(struct sweep *s, const struct cvy_instr *i) {
    touch_bucket(s, 0, i->bucket, true);
    touch(s, TOTAL, true);
}

static void touch_update(struct sweep *s, const struct cvy_instr *i) {
    touch_bucket(s, 0, i->bucket, false);
    touch(s, PERSIST, true);
    touch(s, PACKED, true);
}

/* The first replica's values go to the others. */
static void touch_broadcast(struct sweep *s, const struct cvy_instr *i) {
    (void)i;
    touch(s, PERSIST, s->p->replica > 0);
}

static void touch_refresh(struct sweep *s, const struct cvy_instr *i) {
    (void)i;
    touch(s, PERSIST, false);
    touch(s, PACKED, true);
}

static void (*const touchers[CVY_N_INSTR])(struct sweep *, const struct cvy_instr *) = {
    [CVY_I_LOAD] = fill_slot,        [CVY_I_RUN] = touch_run,       [CVY_I_EXCHANGE] = touch_exchange,
    [CVY_I_ADD] = touch_add,         [CVY_I_SEND] = send_slot,      [CVY_I_RECV] = fill_slot,
    [CVY_I_REDUCE] = touch_reduce,   [CVY_I_WAIT] = touch_wait,     [CVY_I_ACCUMULATE] = touch_accumulate,
    [CVY_I_CHECK] = touch_check,     [CVY_I_FINITE] = touch_finite, [CVY_I_CLIP] = touch_clip,
    [CVY_I_UPDATE] = touch_update,   [CVY_I_RESULT] = touch_result, [CVY_I_BROADCAST] = touch_broadcast,
    [CVY_I_REFRESH] = touch_refresh,
};

/* ---- which position waits for which -------------------------------------------------------------------- */

static void await(struct sweep *s, int32_t *known) {
    const struct cvy_instr *i = &s->schedule->data[s->position - 1];
    s->stream = i->stream;
    for (int32_t t = 0; t < CVY_N_STREAMS; t++)
        s->need[t] = NEVER;
    touchers[i->kind](s, i);
    int32_t need = s->need[!s->stream];
    if (need <= known[s->stream])
        return;
    while (s->stand_in[need] != need)
        need = s->stand_in[need];
    s->awaits[s->position] = need;
    s->awaited_by[need] = s->position;
    known[s->stream] = need;
}

static cvy_status find_waits(struct sweep *s) {
    int32_t known[CVY_N_STREAMS] = {NEVER, NEVER}; /* the newest awaited position of the other stream */
    memset(s->resources, 0, (size_t)s->n_resources * sizeof *s->resources);
    memset(s->awaits, 0, ((size_t)s->n + 1) * sizeof *s->awaits);
    memset(s->awaited_by, 0, ((size_t)s->n + 1) * sizeof *s->awaited_by);
    for (s->position = 1; s->position <= s->n; s->position++) {
        const struct cvy_instr *i = &s->schedule->data[s->position - 1];
        if (!touchers[i->kind] || i->stream < 0 || i->stream >= CVY_N_STREAMS)
            return CVY_FAIL(CVY_ERR_FAILED, "events: nothing is known of the accesses of %s in stream %d",
                            cvy_instr_name(i->kind), i->stream);
        await(s, known);
    }
    return CVY_OK;
}

/* ---- event numbers ------------------------------------------------------------------------------------- */

/* No number is free for the record at `position`: of the open waits for one stream, the two newest share the later
   record. `at[e]` is the position that recorded event e. */
static void share(struct sweep *s, int32_t position, const int32_t *at) {
    int32_t newest[CVY_N_STREAMS] = {NEVER, NEVER}, second[CVY_N_STREAMS] = {NEVER, NEVER};
    newest[s->schedule->data[position - 1].stream] = position;
    for (int e = 0; e < CVY_N_EVENTS; e++) {
        int32_t t = s->schedule->data[at[e] - 1].stream;
        if (at[e] > newest[t]) {
            second[t] = newest[t];
            newest[t] = at[e];
        } else if (at[e] > second[t]) {
            second[t] = at[e];
        }
    }
    int32_t t = second[0] > second[1] ? 0 : 1;
    s->stand_in[second[t]] = newest[t];
}

/* False: numbers ran out, and two waits were made to share one; find the waits again. */
static bool number(struct sweep *s) {
    int32_t at[CVY_N_EVENTS] = {NEVER};
    uint64_t taken = 0;
    for (int32_t k = 1; k <= s->n; k++) {
        struct cvy_instr *i = &s->schedule->data[k - 1];
        i->wait_events = 0;
        i->record_event = -1;
        if (s->awaits[k] != NEVER)
            i->wait_events = UINT64_C(1) << s->schedule->data[s->awaits[k] - 1].record_event;
        if (s->awaited_by[k] != NEVER) {
            if (taken == UINT64_MAX) {
                share(s, k, at);
                return false;
            }
            i->record_event = __builtin_ctzll(~taken);
            taken |= UINT64_C(1) << i->record_event;
            at[i->record_event] = k;
        }
        taken &= ~i->wait_events;
    }
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------------------- */

static int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }

static void measure(struct sweep *s) {
    s->n = (int32_t)s->schedule->n;
    for (int32_t k = 0; k < s->n; k++) {
        const struct cvy_instr *i = &s->schedule->data[k];
        bool is_part = i->kind == CVY_I_RUN && i->phase == CVY_PHASE_BACKWARD && i->bucket < 0;
        int32_t bucket = is_part ? i->part : i->bucket;
        s->has_rows |= i->kind == CVY_I_EXCHANGE;
        s->n_slots = larger(s->n_slots, i->slot + 1);
        s->n_sums = larger(s->n_sums, larger(i->sum, i->from) + 1);
        s->n_buckets = larger(s->n_buckets, bucket + 1);
        if (bucket >= 0 && (s->first_bucket < 0 || bucket < s->first_bucket))
            s->first_bucket = bucket;
    }
    s->n_sums = larger(s->n_sums, 1);
    s->n_resources = N_SINGLE + s->n_slots + s->n_sums * s->n_buckets;
}

cvy_status cvy_events_write(const struct cvy_program *program, cvy_schedule *schedule) {
    struct sweep s = {.p = program, .schedule = schedule, .first_bucket = -1};
    cvy_status status;
    measure(&s);
    CVY_TRY_OUT(CVY_ALLOC(s.resources, (size_t)s.n_resources));
    CVY_TRY_OUT(CVY_ALLOC(s.awaits, (size_t)s.n + 1));
    CVY_TRY_OUT(CVY_ALLOC(s.awaited_by, (size_t)s.n + 1));
    CVY_TRY_OUT(CVY_ALLOC(s.stand_in, (size_t)s.n + 1));
    for (int32_t k = 0; k <= s.n; k++)
        s.stand_in[k] = k;
    do
        CVY_TRY_OUT(find_waits(&s));
    while (!number(&s));
out:
    free(s.resources);
    free(s.awaits);
    free(s.awaited_by);
    free(s.stand_in);
    return status;
}
