/* Writes schedules: a device runs the forward and backward passes of its shards in some order; this file adds what
   the order needs: slots, sums, messages between stages, adds of the tree, all-reduces, updates.

   Sums. A shard's forward pass already writes into a sum (loss, statistics), so it takes a free one then. After its
   backward pass the sum goes onto the tree's stack (rt/tree.h), is added to those below, and is free again. The
   first shard's sum is never freed: it is sum 0, where the device's first partial sum and then the result lie.

   Messages. They follow shards in rising order on every link, so that no deadlock can arise: in the forward pass
   stages wait only for lower ones, in the backward pass only for higher ones, and a sender never waits as long as
   no more shards are under way than the sender has slots. */
#include "rt/program_text.h"
#include "rt/tree.h"
#include "strategy/strategy.h"

#include "base/mem.h"

#include <stdlib.h>

struct writer {
    const struct cvy_strategy_input *in;
    struct cvy_program *out;
    cvy_schedule *to;
    int32_t stage;
    int32_t n_slots;
    bool reduce, is_reduce_late; /* late: after all backward passes, for split calls */
    bool is_on_master;           /* see struct cvy_order */
    struct cvy_tree_stack stack;
    int32_t sum_of[CVY_TREE_DEPTH]; /* the sum in which a position of the stack lies */
    int32_t *sum_of_shard;          /* per local shard */
    bool *is_taken;                 /* per sum */
    int32_t n_sums;
    cvy_status status; /* the first failure sticks */
};

struct cvy_instr cvy_instr_make(enum cvy_instr_kind kind) {
    return (struct cvy_instr){.kind = kind,
                              .stage = -1,
                              .part = -1,
                              .shard = -1,
                              .slot = -1,
                              .sum = -1,
                              .from = -1,
                              .bucket = -1,
                              .record_event = -1};
}

/* ---- single instructions --------------------------------------------------------------------------- */

static void emit(struct writer *w, struct cvy_instr instr) {
    if (w->status == CVY_OK)
        w->status = cvy_vec_push(w->to, instr);
}

/* For local shard i: LOAD, RESULT. */
static void emit_shard(struct writer *w, enum cvy_instr_kind kind, int32_t i) {
    struct cvy_instr instr = cvy_instr_make(kind);
    instr.shard = w->out->first_shard + i;
    instr.slot = i % w->n_slots;
    emit(w, instr);
}

static void emit_run(struct writer *w, enum cvy_phase phase, int32_t part, int32_t i, int32_t sum) {
    struct cvy_instr instr = cvy_instr_make(CVY_I_RUN);
    instr.phase = phase;
    instr.stage = w->stage;
    instr.part = part;
    instr.shard = w->out->first_shard + i;
    instr.slot = i % w->n_slots;
    instr.sum = sum;
    emit(w, instr);
}

/* Messages of shard i with the stages in `peers`, lowest first; `part` is the other stage. */
static void emit_messages(struct writer *w, enum cvy_instr_kind kind, enum cvy_phase phase, uint64_t peers,
                          int32_t i) {
    for (int32_t peer = 0; peer < w->in->mesh.pipe; peer++) {
        struct cvy_instr instr = cvy_instr_make(kind);
        instr.phase = phase;
        instr.stage = w->stage;
        instr.part = peer;
        instr.shard = w->out->first_shard + i;
        instr.slot = i % w->n_slots;
        instr.stream = CVY_STREAM_TALK;
        if (peers >> peer & 1)
            emit(w, instr);
    }
}

static void emit_bucket(struct writer *w, enum cvy_instr_kind kind, int32_t bucket) {
    struct cvy_instr instr = cvy_instr_make(kind);
    instr.bucket = bucket;
    instr.stream = kind == CVY_I_REDUCE ? CVY_STREAM_TALK : CVY_STREAM_COMPUTE;
    bool is_result_here = !w->is_on_master || w->out->replica == 0;
    instr.sum = kind != CVY_I_WAIT && is_result_here ? 0 : -1; /* where the reduced gradients go, and are */
    emit(w, instr);
}

static void emit_part(struct writer *w, enum cvy_instr_kind kind, int32_t part) {
    struct cvy_instr instr = cvy_instr_make(kind);
    instr.part = part;
    instr.stream = kind == CVY_I_BROADCAST ? CVY_STREAM_TALK : CVY_STREAM_COMPUTE;
    emit(w, instr);
}

/* ---- sums ------------------------------------------------------------------------------------------ */

static int32_t take_sum(struct writer *w) {
    int32_t k = 0;
    while (w->is_taken[k])
        k++;
    w->is_taken[k] = true;
    w->n_sums = k + 1 > w->n_sums ? k + 1 : w->n_sums;
    return k;
}

/* The tree's adds for one bucket: n of them, downward from position k of the stack. */
static void emit_adds(struct writer *w, int32_t bucket, int32_t k, int32_t n) {
    for (; n > 0; n--, k--) {
        struct cvy_instr i = cvy_instr_make(CVY_I_ADD);
        i.bucket = bucket;
        i.sum = w->sum_of[k - 1];
        i.from = w->sum_of[k];
        emit(w, i);
    }
}

/* The parameters from the master, and the others' packed copies of them. */
static void emit_fetch(struct writer *w) {
    if (!w->is_on_master || !w->reduce)
        return;
    emit_part(w, CVY_I_BROADCAST, 1);
    if (w->out->replica > 0)
        emit_part(w, CVY_I_REFRESH, 0);
}

/* ---- passes of a shard ----------------------------------------------------------------------------- */

static uint64_t sources(const struct writer *w, enum cvy_phase phase) {
    uint64_t from = 0;
    for (int32_t a = 0; a < w->in->mesh.pipe; a++)
        from |= (w->in->sends[phase][a] >> w->stage & 1) << a;
    return from;
}

static void forward(struct writer *w, int32_t i, int32_t sum) {
    emit_messages(w, CVY_I_RECV, CVY_PHASE_FORWARD, sources(w, CVY_PHASE_FORWARD), i);
    emit_shard(w, CVY_I_LOAD, i);
    emit_run(w, CVY_PHASE_FORWARD, 0, i, sum);
    emit_messages(w, CVY_I_SEND, CVY_PHASE_FORWARD, w->in->sends[CVY_PHASE_FORWARD][w->stage], i);
}

static bool is_mine(const struct writer *w, int32_t bucket) {
    return w->in->bucket_stage[bucket] == w->stage;
}

static void backward(struct writer *w, int32_t i) {
    bool is_last = i == w->out->n_local_shards - 1;
    int32_t k = w->stack.n, n_adds = cvy_tree_push(&w->stack, w->out->first_shard + i, 0);
    w->sum_of[k] = w->sum_of_shard[i];
    emit_messages(w, CVY_I_RECV, CVY_PHASE_BACKWARD, sources(w, CVY_PHASE_BACKWARD), i);
    for (int32_t b = 0; b < w->in->n_buckets; b++) {
        if (!is_mine(w, b))
            continue;
        emit_run(w, CVY_PHASE_BACKWARD, b, i, w->sum_of_shard[i]);
        emit_adds(w, b, k, n_adds);
        if (is_last && w->reduce && !w->is_reduce_late)
            emit_bucket(w, CVY_I_REDUCE, b);
    }
    emit_messages(w, CVY_I_SEND, CVY_PHASE_BACKWARD, w->in->sends[CVY_PHASE_BACKWARD][w->stage], i);
    for (int32_t a = 0; a < n_adds; a++)
        w->is_taken[w->sum_of[k - a]] = false;
}

/* What is done with each bucket once the tree has been climbed. */
enum { WAIT = 1, CHECK = 2, ACCUMULATE = 4, UPDATE = 8 };

static void finish_buckets(struct writer *w, unsigned what) {
    bool is_first = true;
    for (int32_t b = 0; b < w->in->n_buckets; b++) {
        if (!is_mine(w, b))
            continue;
        if (what & WAIT)
            emit_bucket(w, CVY_I_WAIT, b);
        if (is_first && (what & CHECK))
            emit_part(w, CVY_I_CHECK, -1);
        if (what & ACCUMULATE)
            emit_bucket(w, CVY_I_ACCUMULATE, b);
        if (what & UPDATE)
            emit_bucket(w, CVY_I_UPDATE, b);
        is_first = false;
    }
}

/* Bucket by bucket, in the order in which they were started; the loss, which is in the first, is looked at before
   anything else is done. Where the master alone sees it, and may stop there, all waits come before: the others would
   wait in vain for the next bucket. */
static void finish(struct writer *w, unsigned what) {
    if (!w->reduce)
        what &= ~(unsigned)WAIT;
    if (!w->in->is_accumulating)
        what &= ~(unsigned)ACCUMULATE;
    if (w->is_on_master) {
        finish_buckets(w, what & WAIT);
        what &= w->out->replica > 0 ? 0 : ~(unsigned)WAIT;
    }
    if (what)
        finish_buckets(w, what);
}

static void reduce_all(struct writer *w) {
    for (int32_t b = 0; w->reduce && b < w->in->n_buckets; b++) {
        if (is_mine(w, b))
            emit_bucket(w, CVY_I_REDUCE, b);
    }
}

/* ---- schedules ------------------------------------------------------------------------------------- */

static void restart(struct writer *w, int32_t n_slots) {
    w->n_slots = n_slots;
    w->n_sums = 1; /* the result needs a place on a device without shards, too */
    w->stack = (struct cvy_tree_stack){.n_shards = w->in->n_shards};
    for (int32_t i = 0; i < w->out->n_local_shards + CVY_TREE_DEPTH; i++)
        w->is_taken[i] = false;
}

/* One batch; `end` says what follows its backward passes. */
static void write_batch(struct writer *w, struct cvy_order order, cvy_schedule *to, unsigned end) {
    int32_t n = w->out->n_local_shards, n_forward = 0;
    w->to = to;
    restart(w, order.n_slots);
    emit_fetch(w);
    for (int32_t i = 0; i < n; i++) {
        for (; n_forward < n && n_forward < i + order.n_ahead; n_forward++) {
            w->sum_of_shard[n_forward] = take_sum(w);
            forward(w, n_forward, w->sum_of_shard[n_forward]);
        }
        backward(w, i);
    }
    if (n == 0)
        reduce_all(w);
    finish(w, end);
}

static void write_train(struct writer *w, struct cvy_order order) {
    if (w->in->is_accumulating)
        write_batch(w, order, &w->out->accumulate, WAIT | CHECK | ACCUMULATE);
    write_batch(w, order, &w->out->train, WAIT | CHECK | ACCUMULATE | UPDATE);
    w->out->n_slots = order.n_slots;
    w->out->n_sums = w->n_sums;
    for (size_t p = 0; p < w->out->partials.n; p++) { /* where this device's ended */
        struct cvy_partial *partial = &w->out->partials.data[p];
        if (partial->device == w->out->replica)
            partial->sum = w->sum_of[partial->sum];
    }
}

/* Split calls: every shard keeps its slot and its sum between forward and backward; a partial sum ends in the
   sum of the first shard that it stands for. */
static void write_split(struct writer *w) {
    int32_t n = w->out->n_local_shards;
    restart(w, n ? n : 1);
    w->is_reduce_late = true;
    w->to = &w->out->forward;
    emit_fetch(w);
    for (int32_t i = 0; i < n; i++)
        forward(w, i, w->sum_of_shard[i] = i);
    w->to = &w->out->backward;
    for (int32_t i = 0; i < n; i++)
        backward(w, i);
    reduce_all(w);
    finish(w, WAIT | ACCUMULATE);
    w->to = &w->out->update;
    finish(w, CHECK | UPDATE);
    w->out->n_slots_split = w->out->n_sums_split = n ? n : 1;
}

static void write_rest(struct writer *w) {
    w->to = &w->out->evaluate;
    w->n_slots = 1;
    emit_fetch(w);
    emit_part(w, CVY_I_REFRESH, 1);
    for (int32_t i = 0; i < w->out->n_local_shards; i++) {
        forward(w, i, 0);
        emit_shard(w, CVY_I_RESULT, i);
    }
    w->to = &w->out->start;
    if (w->in->mesh.data > 1)
        emit_part(w, CVY_I_BROADCAST, 0);
    if (w->in->n_buckets)
        emit_part(w, CVY_I_REFRESH, 0);
}

static cvy_status place_device(const struct cvy_strategy_input *in, struct cvy_program *out) {
    out->device = in->device;
    out->n_devices = in->mesh.data * in->mesh.pipe;
    out->replica = in->device / in->mesh.pipe;
    out->stage = in->device % in->mesh.pipe;
    out->n_stages = in->mesh.pipe;
    out->n_shards = in->n_shards;
    cvy_tree_shards(in->n_shards, in->mesh.data, out->replica, &out->first_shard, &out->n_local_shards);
    for (int32_t d = 0; d < in->mesh.data; d++) {
        struct cvy_partial partials[CVY_TREE_DEPTH];
        int32_t n = cvy_tree_partials(in->n_shards, in->mesh.data, d, partials, NULL);
        for (int32_t k = 0; k < n; k++)
            CVY_TRY(cvy_vec_push(&out->partials, partials[k]));
    }
    return CVY_OK;
}

cvy_status cvy_schedule_write(const struct cvy_strategy_input *in, struct cvy_order order,
                              struct cvy_program *out) {
    CVY_TRY(place_device(in, out));
    int32_t n = out->n_local_shards;
    struct writer w = {.in = in,
                       .out = out,
                       .stage = out->stage,
                       .reduce = in->mesh.data > 1,
                       .is_on_master = order.is_on_master};
    order.n_slots = order.n_slots > n ? n : order.n_slots;
    order.n_slots = order.n_slots ? order.n_slots : 1;
    CVY_TRY(CVY_ALLOC(w.sum_of_shard, (size_t)n));
    cvy_status status = CVY_ALLOC(w.is_taken, (size_t)n + CVY_TREE_DEPTH);
    out->n_slots = out->n_sums = out->n_slots_split = out->n_sums_split = 1;
    if (status == CVY_OK && in->n_buckets) {
        write_train(&w, order);
        write_split(&w);
    }
    if (status == CVY_OK)
        write_rest(&w);
    free(w.sum_of_shard);
    free(w.is_taken);
    CVY_TRY(status ? status : w.status);
    for (int k = 0; k < CVY_N_SCHEDULES; k++)
        CVY_TRY(cvy_events_write(out, cvy_program_schedule(out, k)));
    return CVY_OK;
}

cvy_status cvy_check_shards(const struct cvy_strategy_input *in) {
    if (in->n_shards < in->mesh.data)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "%d shards cannot occupy %d replicas: raise --shards to %d or more, or take fewer devices",
            in->n_shards, in->mesh.data, in->mesh.data);
    return CVY_OK;
}

cvy_status cvy_check_no_mesh(const char *strategy, const char *asked) {
    if (asked)
        return CVY_FAIL(CVY_ERR_USAGE, "strategy %s takes no mesh; --mesh %s goes with --strategy hybrid",
                        strategy, asked);
    return CVY_OK;
}
