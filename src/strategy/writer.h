/* What writes the instructions of a schedule: shared by the orders in which shards go through the passes. */
#ifndef CVY_STRATEGY_WRITER_H
#define CVY_STRATEGY_WRITER_H

#include "rt/tree.h"
#include "strategy/strategy.h"

struct cvy_scheduler {
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

/* LOAD or RESULT of local shard i. */
void cvy_emit_shard(struct cvy_scheduler *w, enum cvy_instr_kind kind, int32_t i);
/* RUN of local shard i. */
void cvy_emit_run(struct cvy_scheduler *w, enum cvy_phase phase, int32_t part, int32_t i, int32_t sum);
/* Messages of shard i with the stages in `peers`, lowest first; `part` is the other stage. */
void cvy_emit_messages(struct cvy_scheduler *w, enum cvy_instr_kind kind, enum cvy_phase phase,
                       uint64_t peers, int32_t i);
void cvy_emit_bucket(struct cvy_scheduler *w, enum cvy_instr_kind kind, int32_t bucket);
void cvy_emit_part(struct cvy_scheduler *w, enum cvy_instr_kind kind, int32_t part);
/* The tree's adds for one bucket: n of them, downward from position k of the stack. */
void cvy_emit_adds(struct cvy_scheduler *w, int32_t bucket, int32_t k, int32_t n);
/* A sum that is free. */
int32_t cvy_take_sum(struct cvy_scheduler *w);
/* Does the bucket belong to this stage? */
bool cvy_is_mine(const struct cvy_scheduler *w, int32_t bucket);

/* layers.c: all local shards go through a part of a pass before any goes on to the next, and between two parts rows go
   round. Every shard has its own slot and sum; each bucket's sums are added, and with w->reduce unless late handed in,
   as soon as it is complete. */
void cvy_write_forward_layers(struct cvy_scheduler *w);
void cvy_write_backward_layers(struct cvy_scheduler *w);

#endif
