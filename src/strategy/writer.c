/* See writer.h. */
#include "strategy/writer.h"

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

static void emit(struct cvy_scheduler *w, struct cvy_instr instr) {
    if (w->status == CVY_OK)
        w->status = cvy_vec_push(w->to, instr);
}

/* For local shard i: LOAD, RESULT. */
void cvy_emit_shard(struct cvy_scheduler *w, enum cvy_instr_kind kind, int32_t i) {
    struct cvy_instr instr = cvy_instr_make(kind);
    instr.shard = w->out->first_shard + i;
    instr.slot = i % w->n_slots;
    emit(w, instr);
}

void cvy_emit_run(struct cvy_scheduler *w, enum cvy_phase phase, int32_t part, int32_t i, int32_t sum) {
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
void cvy_emit_messages(struct cvy_scheduler *w, enum cvy_instr_kind kind, enum cvy_phase phase,
                       uint64_t peers, int32_t i) {
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

void cvy_emit_bucket(struct cvy_scheduler *w, enum cvy_instr_kind kind, int32_t bucket) {
    struct cvy_instr instr = cvy_instr_make(kind);
    instr.bucket = bucket;
    instr.stream = kind == CVY_I_REDUCE ? CVY_STREAM_TALK : CVY_STREAM_COMPUTE;
    bool is_result_here = !w->is_on_master || w->out->replica == 0;
    instr.sum = kind != CVY_I_WAIT && is_result_here ? 0 : -1; /* where the reduced gradients go, and are */
    emit(w, instr);
}

void cvy_emit_part(struct cvy_scheduler *w, enum cvy_instr_kind kind, int32_t part) {
    struct cvy_instr instr = cvy_instr_make(kind);
    instr.part = part;
    instr.stream = kind == CVY_I_BROADCAST ? CVY_STREAM_TALK : CVY_STREAM_COMPUTE;
    emit(w, instr);
}

/* ---- sums ------------------------------------------------------------------------------------------ */

int32_t cvy_take_sum(struct cvy_scheduler *w) {
    int32_t k = 0;
    while (w->is_taken[k])
        k++;
    w->is_taken[k] = true;
    w->n_sums = k + 1 > w->n_sums ? k + 1 : w->n_sums;
    return k;
}

/* The tree's adds for one bucket: n of them, downward from position k of the stack. */
void cvy_emit_adds(struct cvy_scheduler *w, int32_t bucket, int32_t k, int32_t n) {
    for (; n > 0; n--, k--) {
        struct cvy_instr i = cvy_instr_make(CVY_I_ADD);
        i.bucket = bucket;
        i.sum = w->sum_of[k - 1];
        i.from = w->sum_of[k];
        emit(w, i);
    }
}

bool cvy_is_mine(const struct cvy_scheduler *w, int32_t bucket) {
    return w->in->bucket_stage[bucket] == w->stage;
}
