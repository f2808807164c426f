/* Writes schedules: a device runs the forward and backward passes of its shards in some order; this file adds what
   the order needs: slots, sums, messages between stages, adds of the tree, all-reduces, updates.

   Sums. A shard's forward pass already writes into a sum (loss, statistics), so it takes a free one then. After its
   backward pass the sum goes onto the tree's stack (rt/tree.h), is added to those below, and is free again. The
   first shard's sum is never freed: it is sum 0, where the device's first partial sum and then the result lie.

   Messages. They follow shards in rising order on every link, so that no deadlock can arise: in the forward pass
   stages wait only for lower ones, in the backward pass only for higher ones, and a sender never waits as long as
   no more shards are under way than the sender has slots. */
#include "rt/program_text.h"
#include "strategy/writer.h"

#include "base/mem.h"

#include <stdlib.h>

/* The parameters from the master, and the others' packed copies of them. */
static void emit_fetch(struct cvy_scheduler *w) {
    if (!w->is_on_master || !w->reduce)
        return;
    cvy_emit_part(w, CVY_I_BROADCAST, 1);
    if (w->out->replica > 0)
        cvy_emit_part(w, CVY_I_REFRESH, 0);
}

/* ---- passes of a shard ----------------------------------------------------------------------------- */

static uint64_t sources(const struct cvy_scheduler *w, enum cvy_phase phase) {
    uint64_t from = 0;
    for (int32_t a = 0; a < w->in->mesh.pipe; a++)
        from |= (w->in->sends[phase][a] >> w->stage & 1) << a;
    return from;
}

static void forward(struct cvy_scheduler *w, int32_t i, int32_t sum) {
    cvy_emit_messages(w, CVY_I_RECV, CVY_PHASE_FORWARD, sources(w, CVY_PHASE_FORWARD), i);
    cvy_emit_shard(w, CVY_I_LOAD, i);
    cvy_emit_run(w, CVY_PHASE_FORWARD, 0, i, sum);
    cvy_emit_messages(w, CVY_I_SEND, CVY_PHASE_FORWARD, w->in->sends[CVY_PHASE_FORWARD][w->stage], i);
}

static void backward(struct cvy_scheduler *w, int32_t i) {
    bool is_last = i == w->out->n_local_shards - 1;
    int32_t k = w->stack.n, n_adds = cvy_tree_push(&w->stack, w->out->first_shard + i, 0);
    w->sum_of[k] = w->sum_of_shard[i];
    cvy_emit_messages(w, CVY_I_RECV, CVY_PHASE_BACKWARD, sources(w, CVY_PHASE_BACKWARD), i);
    for (int32_t b = 0; b < w->in->n_buckets; b++) {
        if (!cvy_is_mine(w, b))
            continue;
        cvy_emit_run(w, CVY_PHASE_BACKWARD, b, i, w->sum_of_shard[i]);
        cvy_emit_adds(w, b, k, n_adds);
        if (is_last && w->reduce && !w->is_reduce_late)
            cvy_emit_bucket(w, CVY_I_REDUCE, b);
    }
    cvy_emit_messages(w, CVY_I_SEND, CVY_PHASE_BACKWARD, w->in->sends[CVY_PHASE_BACKWARD][w->stage], i);
    for (int32_t a = 0; a < n_adds; a++)
        w->is_taken[w->sum_of[k - a]] = false;
}

/* What is done with each bucket once the tree has been climbed. */
enum { WAIT = 1, CHECK = 2, ACCUMULATE = 4, UPDATE = 8 };

static void finish_buckets(struct cvy_scheduler *w, unsigned what) {
    bool is_first = true;
    for (int32_t b = 0; b < w->in->n_buckets; b++) {
        if (!cvy_is_mine(w, b))
            continue;
        if (what & WAIT)
            cvy_emit_bucket(w, CVY_I_WAIT, b);
        if (is_first && (what & CHECK))
            cvy_emit_part(w, CVY_I_CHECK, -1);
        if (what & ACCUMULATE)
            cvy_emit_bucket(w, CVY_I_ACCUMULATE, b);
        if (what & UPDATE)
            cvy_emit_bucket(w, CVY_I_UPDATE, b);
        is_first = false;
    }
}

/* Bucket by bucket, in the order in which they were started; the loss, which is in the first, is looked at before
   anything else is done. Where the master alone sees it, and may stop there, all waits come before: the others would
   wait in vain for the next bucket. So it is where an update depends on all gradients. */
static void finish(struct cvy_scheduler *w, unsigned what) {
    if (!w->reduce)
        what &= ~(unsigned)WAIT;
    if (!w->in->is_accumulating)
        what &= ~(unsigned)ACCUMULATE;
    bool needs_all = w->in->is_scaled || w->in->is_clipped;
    if (w->is_on_master || needs_all) {
        finish_buckets(w, what & WAIT);
        what &= w->is_on_master && w->out->replica > 0 ? 0 : ~(unsigned)WAIT;
    }
    if (needs_all && (what & UPDATE)) {
        finish_buckets(w, what & ~(unsigned)UPDATE);
        if (w->in->is_scaled)
            cvy_emit_part(w, CVY_I_FINITE, -1);
        if (w->in->is_clipped)
            cvy_emit_part(w, CVY_I_CLIP, -1);
        what = UPDATE;
    }
    if (what)
        finish_buckets(w, what);
}

static void reduce_all(struct cvy_scheduler *w) {
    for (int32_t b = 0; w->reduce && b < w->in->n_buckets; b++) {
        if (cvy_is_mine(w, b))
            cvy_emit_bucket(w, CVY_I_REDUCE, b);
    }
}

/* ---- schedules ------------------------------------------------------------------------------------- */

static void restart(struct cvy_scheduler *w, int32_t n_slots) {
    w->n_slots = n_slots;
    w->n_sums = 1; /* the result needs a place on a device without shards, too */
    w->stack = (struct cvy_tree_stack){.n_shards = w->in->n_shards};
    for (int32_t i = 0; i < w->out->n_local_shards + CVY_TREE_DEPTH; i++)
        w->is_taken[i] = false;
}

/* Every shard keeps its slot and its sum; in split calls, or where all go through a layer together. */
static void restart_all(struct cvy_scheduler *w) {
    int32_t n = w->out->n_local_shards;
    restart(w, n ? n : 1);
    for (int32_t i = 0; i < n; i++)
        w->sum_of_shard[i] = i;
    w->n_sums = n ? n : 1;
}

/* One batch; `end` says what follows its backward passes. */
static void write_batch(struct cvy_scheduler *w, struct cvy_order order, cvy_schedule *to, unsigned end) {
    int32_t n = w->out->n_local_shards, n_forward = 0;
    w->to = to;
    restart(w, order.n_slots);
    emit_fetch(w);
    for (int32_t i = 0; i < n; i++) {
        for (; n_forward < n && n_forward < i + order.n_ahead; n_forward++) {
            w->sum_of_shard[n_forward] = cvy_take_sum(w);
            forward(w, n_forward, w->sum_of_shard[n_forward]);
        }
        backward(w, i);
    }
    if (n == 0)
        reduce_all(w);
    finish(w, end);
}

/* The same, layer by layer: rows go round between their parts. */
static void write_batch_in_layers(struct cvy_scheduler *w, cvy_schedule *to, unsigned end) {
    w->to = to;
    restart_all(w);
    emit_fetch(w);
    cvy_write_forward_layers(w);
    cvy_write_backward_layers(w);
    finish(w, end);
}

static bool is_in_layers(const struct cvy_scheduler *w) { return w->in->n_parts[CVY_PHASE_FORWARD] > 0; }

static void write_train(struct cvy_scheduler *w, struct cvy_order order) {
    const unsigned inner = WAIT | CHECK | ACCUMULATE;
    cvy_schedule *const schedules[] = {&w->out->accumulate, &w->out->train};
    for (int k = w->in->is_accumulating ? 0 : 1; k < 2; k++) {
        if (is_in_layers(w))
            write_batch_in_layers(w, schedules[k], k ? inner | UPDATE : inner);
        else
            write_batch(w, order, schedules[k], k ? inner | UPDATE : inner);
    }
    w->out->n_slots = w->n_slots;
    w->out->n_sums = w->n_sums;
    for (size_t p = 0; p < w->out->partials.n; p++) { /* where this device's ended */
        struct cvy_partial *partial = &w->out->partials.data[p];
        if (partial->device == w->out->replica)
            partial->sum = w->sum_of[partial->sum];
    }
}

/* Split calls: every shard keeps its slot and its sum between forward and backward; a partial sum ends in the
   sum of the first shard that it stands for. */
static void write_split(struct cvy_scheduler *w) {
    int32_t n = w->out->n_local_shards;
    restart_all(w);
    w->is_reduce_late = true;
    w->to = &w->out->forward;
    emit_fetch(w);
    if (is_in_layers(w))
        cvy_write_forward_layers(w);
    for (int32_t i = 0; i < n && !is_in_layers(w); i++)
        forward(w, i, i);
    w->to = &w->out->backward;
    if (is_in_layers(w))
        cvy_write_backward_layers(w);
    for (int32_t i = 0; i < n && !is_in_layers(w); i++)
        backward(w, i);
    reduce_all(w);
    finish(w, WAIT | ACCUMULATE);
    w->to = &w->out->update;
    finish(w, CHECK | UPDATE);
    w->out->n_slots_split = w->out->n_sums_split = n ? n : 1;
}

static void write_rest(struct cvy_scheduler *w) {
    w->to = &w->out->evaluate;
    w->n_slots = 1;
    emit_fetch(w);
    cvy_emit_part(w, CVY_I_REFRESH, 1);
    for (int32_t i = 0; i < w->out->n_local_shards; i++) {
        forward(w, i, 0);
        cvy_emit_shard(w, CVY_I_RESULT, i);
    }
    w->to = &w->out->start;
    if (w->in->mesh.data > 1)
        cvy_emit_part(w, CVY_I_BROADCAST, 0);
    if (w->in->n_buckets)
        cvy_emit_part(w, CVY_I_REFRESH, 0);
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
    struct cvy_scheduler w = {.in = in,
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
        return CVY_FAIL(CVY_ERR_USAGE,
                        "%d shards (--shards) cannot occupy %d replicas: raise --shards to %d or more, or "
                        "take fewer --devices",
                        in->n_shards, in->mesh.data, in->mesh.data);
    return CVY_OK;
}

cvy_status cvy_check_no_mesh(const char *strategy, const char *asked) {
    if (asked)
        return CVY_FAIL(CVY_ERR_USAGE, "strategy %s takes no mesh; --mesh %s goes with --strategy hybrid",
                        strategy, asked);
    return CVY_OK;
}
