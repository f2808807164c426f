/* Schedules for whole replicas. A device runs its shards in order; shard s's sums go on a stack and are added
   as rt/tree.h says. The last shard's backward pass is interleaved with the buckets: as soon as part b has run,
   bucket b is complete on this device, is added up and handed to the all-reduce. */
#include "strategy/strategy.h"

#include "rt/tree.h"

struct writer { /* appends to one schedule; the first failure sticks */
    cvy_schedule *to;
    cvy_status status;
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

static void emit(struct writer *w, struct cvy_instr instr) {
    if (w->status == CVY_OK)
        w->status = cvy_vec_push(w->to, instr);
}

static void emit_load(struct writer *w, int32_t shard, int32_t slot) {
    struct cvy_instr i = cvy_instr_make(CVY_I_LOAD);
    i.shard = shard;
    i.slot = slot;
    emit(w, i);
}

static void emit_run(struct writer *w, enum cvy_phase phase, int32_t part, int32_t shard, int32_t slot,
                     int32_t sum) {
    struct cvy_instr i = cvy_instr_make(CVY_I_RUN);
    i.phase = phase;
    i.stage = 0;
    i.part = part;
    i.shard = shard;
    i.slot = slot;
    i.sum = sum;
    emit(w, i);
}

static void emit_bucket(struct writer *w, enum cvy_instr_kind kind, int32_t bucket) {
    struct cvy_instr i = cvy_instr_make(kind);
    i.bucket = bucket;
    i.stream = kind == CVY_I_REDUCE;
    i.sum = kind == CVY_I_UPDATE ? 0 : -1; /* where the reduced gradients are */
    emit(w, i);
}

static void emit_simple(struct writer *w, enum cvy_instr_kind kind, int32_t part) {
    struct cvy_instr i = cvy_instr_make(kind);
    i.part = part;
    emit(w, i);
}

/* The adds of the tree for one bucket: n of them, downward from sum k. */
static void emit_adds(struct writer *w, int32_t bucket, int32_t k, int32_t n, const int32_t *sum_of) {
    for (; n > 0; n--, k--) {
        struct cvy_instr i = cvy_instr_make(CVY_I_ADD);
        i.bucket = bucket;
        i.sum = sum_of[k - 1];
        i.from = sum_of[k];
        emit(w, i);
    }
}

cvy_status cvy_schedule_shards(const struct cvy_strategy_input *input, struct cvy_program *out) {
    out->device = input->device;
    out->n_devices = input->n_devices;
    out->n_shards = input->n_shards;
    cvy_tree_shards(input->n_shards, input->n_devices, input->device, &out->first_shard,
                    &out->n_local_shards);
    for (int32_t d = 0; d < input->n_devices; d++) {
        struct cvy_partial partials[CVY_TREE_DEPTH];
        int32_t n = cvy_tree_partials(input->n_shards, input->n_devices, d, partials,
                                      d == input->device ? &out->n_sums : NULL);
        for (int32_t k = 0; k < n; k++)
            CVY_TRY(cvy_vec_push(&out->partials, partials[k]));
    }
    out->n_sums =
        out->n_sums ? out->n_sums : 1; /* the result needs a place on a device without shards, too */
    out->n_slots = 1;
    out->n_slots_split = out->n_local_shards ? out->n_local_shards : 1;
    out->n_sums_split = out->n_slots_split;
    return CVY_OK;
}

/* Waits, looks at the loss, updates: bucket by bucket, in the order in which they were started. */
static void emit_finish(struct writer *w, const struct cvy_strategy_input *in, bool wait, bool update) {
    for (int32_t b = 0; b < in->n_buckets; b++) {
        if (wait)
            emit_bucket(w, CVY_I_WAIT, b);
        if (b == 0 && update)
            emit_simple(w, CVY_I_CHECK, -1);
        if (update)
            emit_bucket(w, CVY_I_UPDATE, b);
    }
}

static cvy_status write_train(const struct cvy_strategy_input *in, bool reduce, struct cvy_program *out) {
    struct writer w = {&out->train, CVY_OK};
    struct cvy_tree_stack stack = {.n_shards = in->n_shards};
    int32_t sum_of[CVY_TREE_DEPTH];
    for (int32_t k = 0; k < CVY_TREE_DEPTH; k++)
        sum_of[k] = k;
    for (int32_t s = out->first_shard; s < out->first_shard + out->n_local_shards; s++) {
        bool is_last = s == out->first_shard + out->n_local_shards - 1;
        int32_t k = stack.n, n_adds = cvy_tree_push(&stack, s, 0);
        emit_load(&w, s, 0);
        emit_run(&w, CVY_PHASE_FORWARD, 0, s, 0, k);
        for (int32_t b = 0; b < in->n_buckets; b++) {
            emit_run(&w, CVY_PHASE_BACKWARD, b, s, 0, k);
            emit_adds(&w, b, k, n_adds, sum_of);
            if (is_last && reduce)
                emit_bucket(&w, CVY_I_REDUCE, b);
        }
    }
    for (int32_t b = 0; out->n_local_shards == 0 && reduce && b < in->n_buckets; b++)
        emit_bucket(&w, CVY_I_REDUCE, b);
    emit_finish(&w, in, reduce, true);
    return w.status;
}

/* Split calls: every shard keeps its slot and its sum between forward and backward. The tree's stack position k
   then lies in the sum of the first shard that it stands for. */
static cvy_status write_split(const struct cvy_strategy_input *in, bool reduce, struct cvy_program *out) {
    struct writer f = {&out->forward, CVY_OK}, b = {&out->backward, CVY_OK}, u = {&out->update, CVY_OK};
    struct cvy_tree_stack stack = {.n_shards = in->n_shards};
    int32_t sum_of[CVY_TREE_DEPTH] = {0};
    for (int32_t i = 0; i < out->n_local_shards; i++) {
        int32_t s = out->first_shard + i, k = stack.n, n_adds = cvy_tree_push(&stack, s, 0);
        emit_load(&f, s, i);
        emit_run(&f, CVY_PHASE_FORWARD, 0, s, i, i);
        sum_of[k] = i;
        for (int32_t p = 0; p < in->n_buckets; p++) {
            emit_run(&b, CVY_PHASE_BACKWARD, p, s, i, i);
            emit_adds(&b, p, k, n_adds, sum_of);
        }
    }
    for (int32_t p = 0; reduce && p < in->n_buckets; p++)
        emit_bucket(&b, CVY_I_REDUCE, p);
    emit_finish(&b, in, reduce, false);
    emit_finish(&u, in, false, true);
    return f.status ? f.status : b.status ? b.status : u.status;
}

static cvy_status write_rest(const struct cvy_strategy_input *in, struct cvy_program *out) {
    struct writer e = {&out->evaluate, CVY_OK}, s = {&out->start, CVY_OK};
    emit_simple(&e, CVY_I_REFRESH, 1);
    for (int32_t i = 0; i < out->n_local_shards; i++) {
        emit_load(&e, out->first_shard + i, 0);
        emit_run(&e, CVY_PHASE_FORWARD, 0, out->first_shard + i, 0, 0);
        struct cvy_instr result = cvy_instr_make(CVY_I_RESULT);
        result.shard = out->first_shard + i;
        result.slot = 0;
        emit(&e, result);
    }
    if (in->n_devices > 1)
        emit_simple(&s, CVY_I_BROADCAST, -1);
    if (in->n_buckets)
        emit_simple(&s, CVY_I_REFRESH, 0);
    return e.status ? e.status : s.status;
}

cvy_status cvy_schedule_replica(const struct cvy_strategy_input *input, bool reduce,
                                struct cvy_program *out) {
    CVY_TRY(cvy_schedule_shards(input, out));
    if (input->n_buckets) {
        CVY_TRY(write_train(input, reduce, out));
        CVY_TRY(write_split(input, reduce, out));
    }
    return write_rest(input, out);
}
