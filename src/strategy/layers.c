/* layers: see writer.h. */
#include "strategy/writer.h"

/* All devices together, or a device alone, which then clears the rows of empty shards; the rows of `part` are complete
   on each when it is over. */
static void emit_exchange(struct cvy_scheduler *w, enum cvy_phase phase, int32_t part) {
    struct cvy_instr instr = cvy_instr_make(CVY_I_EXCHANGE);
    instr.phase = phase;
    instr.stage = w->stage;
    instr.part = part;
    instr.stream = w->reduce ? CVY_STREAM_TALK : CVY_STREAM_COMPUTE;
    if (w->status == CVY_OK)
        w->status = cvy_vec_push(w->to, instr);
}

void cvy_write_forward_layers(struct cvy_scheduler *w) {
    for (int32_t p = 0; p < w->in->n_parts[CVY_PHASE_FORWARD]; p++) {
        for (int32_t i = 0; i < w->out->n_local_shards; i++) {
            if (p == 0)
                cvy_emit_shard(w, CVY_I_LOAD, i);
            cvy_emit_run(w, CVY_PHASE_FORWARD, p, i, w->sum_of_shard[i]);
        }
        if (w->in->parts[CVY_PHASE_FORWARD][p].is_exchange)
            emit_exchange(w, CVY_PHASE_FORWARD, p);
    }
}

/* The tree over all local shards, for one bucket. */
static void emit_tree(struct cvy_scheduler *w, int32_t bucket) {
    w->stack = (struct cvy_tree_stack){.n_shards = w->in->n_shards};
    for (int32_t i = 0; i < w->out->n_local_shards; i++) {
        int32_t k = w->stack.n, n_adds = cvy_tree_push(&w->stack, w->out->first_shard + i, 0);
        w->sum_of[k] = w->sum_of_shard[i];
        cvy_emit_adds(w, bucket, k, n_adds);
    }
    if (w->reduce && !w->is_reduce_late)
        cvy_emit_bucket(w, CVY_I_REDUCE, bucket);
}

void cvy_write_backward_layers(struct cvy_scheduler *w) {
    for (int32_t p = 0; p < w->in->n_parts[CVY_PHASE_BACKWARD]; p++) {
        const struct cvy_part *part = &w->in->parts[CVY_PHASE_BACKWARD][p];
        for (int32_t i = 0; i < w->out->n_local_shards; i++) {
            cvy_emit_run(w, CVY_PHASE_BACKWARD, p, i, w->sum_of_shard[i]);
            if (w->status == CVY_OK)
                w->to->data[w->to->n - 1].bucket = part->bucket;
        }
        if (part->is_bucket_end)
            emit_tree(w, part->bucket);
        if (part->is_exchange)
            emit_exchange(w, CVY_PHASE_BACKWARD, p);
    }
}
