/* For tests: runs the schedules of all devices of a mesh on nothing but shard numbers, as the executor and the
   transport would, and sees to it that
     - every stage runs every shard of its replica once forward and once backward, with what others send it;
     - where rows are exchanged, that every shard has run the part before, and no shard the one behind;
     - no slot and no sum is written while it holds something that is still needed;
     - all additions are those of the tree, so that each bucket ends as the sum over all shards;
     - messages are received in the order in which they were sent, and no device waits for ever.
   The value of a sum's bucket is a range of shards; two of them may be added only where the tree's definition
   (rt/tree.h) adds them. */
#ifndef CVY_STRATEGY_SIMULATOR_H
#define CVY_STRATEGY_SIMULATOR_H

#include "rt/tree.h"
#include "strategy/schedule_case.h"

#include <string.h>

enum { MAX_SUMS = 128, MAX_SLOTS = 64, MAX_SHARDS = 64, MAX_STAGES = 8 };
enum { FREE, PENDING, HELD }; /* PENDING: a shard's forward pass wrote there, its backward pass is to come */

struct value { /* of one bucket of one sum: shards first .. end - 1 */
    int state;
    int32_t first, end;
};

struct device {
    const struct cvy_program *p;
    const cvy_schedule *schedule;
    size_t at;
    bool is_split, has_arrived; /* at the meeting that it stands before */
    struct value sums[MAX_SUMS][CASE_MAX_BUCKETS];
    int32_t shard_in_slot[MAX_SLOTS]; /* or -1 */
    bool has_forward[MAX_SHARDS];     /* per local shard, as all below */
    int32_t n_backward[MAX_SHARDS];   /* buckets done */
    int32_t n_parts[2][MAX_SHARDS];   /* per phase: done, where rows are exchanged */
    int32_t n_exchanges[2];           /* per phase: parts up to the newest exchange */
    uint64_t received[2][MAX_SHARDS]; /* per phase: bit a, from stage a */
    bool is_posted[CASE_MAX_BUCKETS], is_updated[CASE_MAX_BUCKETS], is_accumulated[CASE_MAX_BUCKETS];
    int32_t n_checks, n_clips, n_in_flight, most_in_flight, n_sums, n_slots;
};

struct message {
    int32_t phase, shard;
};

struct link {
    struct message queue[MAX_STAGES + 1]; /* the transport's limit: one more than there are stages */
    int n;
};

struct meeting {
    int n_arrived, n_left;
};

struct world {
    struct schedule_case *c;
    struct device device[CASE_MAX_DEVICES];
    struct link link[CASE_MAX_DEVICES][MAX_STAGES][MAX_STAGES]; /* replica, from, to */
    struct meeting wait[CASE_MAX_BUCKETS], broadcast[MAX_STAGES], check;
    struct meeting exchange[2][2 * CASE_MAX_BUCKETS + 3]; /* by phase and part */
    bool
        is_reduced_at_once; /* as an asynchronous device does: the stream stands in `reduce` until all have come */
};

static bool is_mine(const struct world *w, const struct device *d, int32_t bucket) {
    return w->c->bucket_stage[bucket] == d->p->stage;
}

static int32_t local(const struct device *d, int32_t shard) {
    int32_t i = shard - d->p->first_shard;
    assert_in_range(i, 0, d->p->n_local_shards - 1);
    return i;
}

/* ---- sums ------------------------------------------------------------------------------------------ */

/* Does the tree of n shards add a and b? As node (l, a.first) + node (l, a.first + 2^l), cut at n. */
static bool is_addition(struct value a, struct value b, int32_t n) {
    int32_t half = a.end - a.first;
    bool is_power = (half & (half - 1)) == 0;
    int32_t end = a.first + 2 * half;
    return a.state == HELD && b.state == HELD && is_power && a.first % (2 * half) == 0 && b.first == a.end &&
           b.end == (end < n ? end : n);
}

static bool is_all(struct value v, int32_t n) { return v.state == HELD && v.first == 0 && v.end == n; }

static void count_sums(const struct world *w, struct device *d) {
    for (int32_t k = 0; k < MAX_SUMS; k++) {
        for (int32_t b = 0; b < w->c->input.n_buckets; b++) {
            if (d->sums[k][b].state != FREE && k >= d->n_sums)
                d->n_sums = k + 1;
        }
    }
}

/* A shard's forward pass begins to write into all of its sum. */
static void begin_sum(const struct world *w, struct device *d, int32_t sum, int32_t shard) {
    assert_in_range(sum, 0, MAX_SUMS - 1);
    for (int32_t b = 0; b < w->c->input.n_buckets; b++) {
        assert_int_equal(d->sums[sum][b].state, FREE);
        if (is_mine(w, d, b))
            d->sums[sum][b] = (struct value){PENDING, shard, shard + 1};
    }
    count_sums(w, d);
}

static void add(const struct world *w, struct device *d, const struct cvy_instr *i) {
    struct value *to = &d->sums[i->sum][i->bucket], *from = &d->sums[i->from][i->bucket];
    assert_false(d->is_posted[i->bucket]);
    assert_true(is_addition(*to, *from, w->c->n_shards));
    to->end = from->end;
    from->state = FREE;
}

/* All replicas of the stage brought their partial sums: adds them up, in order, and leaves the sum where it is
   wanted. */
static void reduce(struct world *w, int32_t stage, int32_t bucket) {
    struct value stack[CVY_TREE_DEPTH];
    int32_t n = 0, pipe = w->c->input.mesh.pipe;
    for (int32_t r = 0; r < w->c->input.mesh.data; r++) {
        struct device *d = &w->device[r * pipe + stage];
        for (size_t k = 0; k < d->p->partials.n; k++) {
            const struct cvy_partial *p = &d->p->partials.data[k];
            if (p->device != r)
                continue;
            struct value *v = &d->sums[d->is_split ? p->first - d->p->first_shard : p->sum][bucket];
            assert_int_equal(v->state, HELD);
            stack[n++] = *v;
            v->state = FREE;
            for (; n > 1 && is_addition(stack[n - 2], stack[n - 1], w->c->n_shards); n--)
                stack[n - 2].end = stack[n - 1].end;
        }
    }
    assert_int_equal(n, 1);
    for (int32_t r = 0; r < w->c->input.mesh.data; r++) {
        struct device *d = &w->device[r * pipe + stage];
        bool is_wanted = strcmp(w->c->strategy, "dp") != 0 || r == 0;
        if (is_wanted)
            d->sums[0][bucket] = stack[0];
    }
}

/* ---- instructions: false when the device must wait --------------------------------------------------- */

/* A meeting of n, as the transport's are: nobody leaves before all have come. */
static bool meet(struct device *d, struct meeting *m, int n) {
    m->n_arrived += !d->has_arrived;
    d->has_arrived = true;
    if (m->n_arrived < n)
        return false;
    d->has_arrived = false;
    if (++m->n_left == n)
        *m = (struct meeting){0, 0};
    return true;
}

/* By its first message, or by what the host brings. */
static void take_slot(const struct world *w, struct device *d, const struct cvy_instr *i) {
    assert_in_range(i->slot, 0, MAX_SLOTS - 1);
    int32_t before = d->shard_in_slot[i->slot];
    if (before == i->shard)
        return;
    if (before >= 0) /* its backward pass is over; its messages: see talk */
        assert_int_equal(d->n_backward[local(d, before)], w->c->n_buckets_of_stage);
    d->shard_in_slot[i->slot] = i->shard;
    d->n_slots = i->slot >= d->n_slots ? i->slot + 1 : d->n_slots;
}

static uint64_t sources(const struct world *w, const struct device *d, enum cvy_phase phase) {
    uint64_t from = 0;
    for (int32_t a = 0; a < w->c->input.mesh.pipe; a++)
        from |= (w->c->input.sends[phase][a] >> d->p->stage & 1) << a;
    return from;
}

/* Parts in order, none before the exchange that it may need. */
static void run_part(const struct world *w, struct device *d, const struct cvy_instr *i, int32_t shard) {
    const struct cvy_part *parts = w->c->input.parts[i->phase];
    int32_t needed = 0;
    assert_int_equal(i->part, d->n_parts[i->phase][shard]);
    assert_in_range(i->part, 0, w->c->input.n_parts[i->phase] - 1);
    for (int32_t p = 0; p < i->part; p++)
        needed = parts[p].is_exchange ? p + 1 : needed;
    assert_int_equal(d->n_exchanges[i->phase], needed);
    if (i->phase == CVY_PHASE_BACKWARD) {
        assert_int_equal(d->n_parts[CVY_PHASE_FORWARD][shard], w->c->input.n_parts[CVY_PHASE_FORWARD]);
        assert_int_equal(i->bucket, parts[i->part].bucket);
    }
    d->n_parts[i->phase][shard]++;
}

/* All replicas, after all of their shards ran the part. */
static bool exchange(struct world *w, struct device *d, const struct cvy_instr *i) {
    assert_true(w->c->input.parts[i->phase][i->part].is_exchange);
    for (int32_t shard = 0; shard < d->p->n_local_shards; shard++)
        assert_int_equal(d->n_parts[i->phase][shard], i->part + 1);
    if (!meet(d, &w->exchange[i->phase][i->part], w->c->input.mesh.data))
        return false;
    d->n_exchanges[i->phase] = i->part + 1;
    return true;
}

static void run(const struct world *w, struct device *d, const struct cvy_instr *i) {
    int32_t shard = local(d, i->shard);
    bool is_in_layers = w->c->input.n_parts[CVY_PHASE_FORWARD] > 0;
    assert_int_equal(i->stage, d->p->stage);
    assert_int_equal(d->shard_in_slot[i->slot], i->shard);
    assert_int_equal(d->received[i->phase][shard], sources(w, d, i->phase));
    if (is_in_layers)
        run_part(w, d, i, shard);
    if (i->phase == CVY_PHASE_FORWARD && is_in_layers && i->part > 0)
        return;
    if (i->phase == CVY_PHASE_FORWARD) {
        assert_false(d->has_forward[shard]);
        d->has_forward[shard] = true;
        begin_sum(w, d, i->sum, i->shard);
        d->most_in_flight = ++d->n_in_flight > d->most_in_flight ? d->n_in_flight : d->most_in_flight;
        return;
    }
    int32_t bucket = is_in_layers ? i->bucket : i->part;
    assert_true(d->has_forward[shard] && is_mine(w, d, bucket));
    struct value *v = &d->sums[i->sum][bucket];
    assert_true(v->state == PENDING && v->first == i->shard);
    if (is_in_layers && !w->c->input.parts[CVY_PHASE_BACKWARD][i->part].is_bucket_end)
        return;
    v->state = HELD;
    d->n_in_flight -= ++d->n_backward[shard] == w->c->n_buckets_of_stage;
}

/* `part` is the other stage. What is sent was made, and lies in the slot still. */
static bool talk(struct world *w, struct device *d, const struct cvy_instr *i) {
    int32_t me = d->p->stage, shard = local(d, i->shard);
    bool is_send = i->kind == CVY_I_SEND;
    struct link *link = &w->link[d->p->replica][is_send ? me : i->part][is_send ? i->part : me];
    if (is_send) {
        assert_int_equal(d->shard_in_slot[i->slot], i->shard);
        assert_true(w->c->input.sends[i->phase][me] >> i->part & 1);
        assert_true(i->phase == CVY_PHASE_FORWARD ? d->has_forward[shard] : d->n_backward[shard] > 0);
        if (link->n > w->c->input.mesh.pipe)
            return false;
        link->queue[link->n++] = (struct message){(int32_t)i->phase, i->shard};
        return true;
    }
    if (link->n == 0)
        return false;
    if (i->phase == CVY_PHASE_FORWARD)
        take_slot(w, d, i);
    assert_int_equal(d->shard_in_slot[i->slot], i->shard);
    assert_int_equal(link->queue[0].phase, i->phase);
    assert_int_equal(link->queue[0].shard, i->shard);
    memmove(link->queue, link->queue + 1, (size_t)--link->n * sizeof *link->queue);
    d->received[i->phase][shard] |= UINT64_C(1) << i->part;
    return true;
}

static bool post(const struct world *w, struct device *d, const struct cvy_instr *i) {
    assert_true(is_mine(w, d, i->bucket) && (!d->is_posted[i->bucket] || d->has_arrived));
    d->is_posted[i->bucket] = true;
    return true;
}

static bool wait(struct world *w, struct device *d, const struct cvy_instr *i) {
    assert_true(d->is_posted[i->bucket]);
    if (!d->has_arrived && w->wait[i->bucket].n_arrived == w->c->input.mesh.data - 1)
        reduce(w, d->p->stage, i->bucket);
    return meet(d, &w->wait[i->bucket], w->c->input.mesh.data);
}

/* The last stage knows the loss by then, and nothing was updated. */
static bool check(struct world *w, struct device *d) {
    bool is_new = !d->has_arrived;
    d->n_checks += is_new;
    for (int32_t b = 0; b < w->c->input.n_buckets; b++)
        assert_false(d->is_updated[b]);
    if (d->p->stage == d->p->n_stages - 1)
        assert_true(is_all(d->sums[0][0], w->c->n_shards));
    return d->p->n_stages == 1 || meet(d, &w->check, w->c->n_devices);
}

/* The batch's result, whole, and once. */
static void accumulate(const struct world *w, struct device *d, const struct cvy_instr *i) {
    assert_true(w->c->is_accumulating && is_mine(w, d, i->bucket) &&
                is_all(d->sums[0][i->bucket], w->c->n_shards));
    assert_false(d->is_accumulated[i->bucket] || d->is_updated[i->bucket]);
    d->is_accumulated[i->bucket] = true;
}

/* Once for each update, and before it: of all buckets, whole. */
static void clip(const struct world *w, struct device *d) {
    assert_true(w->c->is_clipped && d->n_checks == 1);
    for (int32_t b = 0; b < w->c->input.n_buckets; b++) {
        if (is_mine(w, d, b))
            assert_true(is_all(d->sums[0][b], w->c->n_shards) && !d->is_updated[b]);
    }
    d->n_clips++;
}

static void update(const struct world *w, struct device *d, const struct cvy_instr *i) {
    assert_true(is_mine(w, d, i->bucket) && is_all(d->sums[0][i->bucket], w->c->n_shards));
    assert_int_equal(d->n_checks, 1);
    assert_int_equal(d->n_clips, w->c->is_clipped);
    assert_false(d->is_updated[i->bucket]);
    assert_int_equal(d->is_accumulated[i->bucket], w->c->is_accumulating);
    d->is_updated[i->bucket] = true;
}

static bool perform(struct world *w, struct device *d, const struct cvy_instr *i) {
    switch ((int)i->kind) {
    case CVY_I_SEND:
    case CVY_I_RECV:
        return talk(w, d, i);
    case CVY_I_REDUCE:
        return post(w, d, i) && (!w->is_reduced_at_once || wait(w, d, i));
    case CVY_I_EXCHANGE:
        return exchange(w, d, i);
    case CVY_I_WAIT:
        return w->is_reduced_at_once || wait(w, d, i);
    case CVY_I_CHECK:
        return check(w, d);
    case CVY_I_BROADCAST:
        return meet(d, &w->broadcast[d->p->stage], w->c->input.mesh.data);
    case CVY_I_LOAD:
        take_slot(w, d, i);
        break;
    case CVY_I_RUN:
        run(w, d, i);
        break;
    case CVY_I_ADD:
        add(w, d, i);
        break;
    case CVY_I_ACCUMULATE:
        accumulate(w, d, i);
        break;
    case CVY_I_CLIP:
        clip(w, d);
        break;
    case CVY_I_UPDATE:
        update(w, d, i);
        break;
    default:
        break; /* refresh, result: nothing here */
    }
    return true;
}

/* Takes turns, a device a round as far as it comes, until all are at the end. */
static void run_all(struct world *w) {
    for (bool is_stuck = false, is_done = false; !is_done;) {
        if (is_stuck)
            fail_msg("%s, %d devices, %d shards: all devices wait", w->c->strategy, w->c->n_devices,
                     w->c->n_shards);
        is_stuck = is_done = true;
        for (int32_t k = 0; k < w->c->n_devices; k++) {
            struct device *d = &w->device[k];
            for (; d->at < d->schedule->n && perform(w, d, &d->schedule->data[d->at]); d->at++)
                is_stuck = false;
            is_done &= d->at == d->schedule->n;
        }
    }
}

/* ---- whole steps ------------------------------------------------------------------------------------- */

static void world_open(struct world *w, struct schedule_case *c) {
    memset(w, 0, sizeof *w);
    w->c = c;
    for (int32_t k = 0; k < c->n_devices; k++) {
        w->device[k].p = c->program[k];
        memset(w->device[k].shard_in_slot, -1, sizeof w->device[k].shard_in_slot);
    }
}

/* One schedule of every device, given by its place in the program. */
static void world_run(struct world *w, size_t schedule, bool is_split) {
    for (int32_t k = 0; k < w->c->n_devices; k++) {
        struct device *d = &w->device[k];
        d->schedule = (const cvy_schedule *)((const char *)d->p + schedule);
        d->at = 0;
        d->is_split = is_split;
    }
    run_all(w);
}

#endif
