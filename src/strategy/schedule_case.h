/* For tests: the programs that a strategy writes for all devices of a mesh, without graphs: stages that send to the
   next one (and, with skips, to the one after it), and so many buckets for each stage. */
#ifndef CVY_STRATEGY_SCHEDULE_CASE_H
#define CVY_STRATEGY_SCHEDULE_CASE_H

#include "cvy_test.h"
#include "strategy/strategy.h"

#include <stdlib.h>

enum { CASE_MAX_DEVICES = 64, CASE_MAX_BUCKETS = 64 };

struct schedule_case {
    const char *strategy, *schedule, *mesh; /* as the user says them; schedule and mesh may be NULL */
    int32_t n_devices, n_shards;
    int32_t n_buckets_of_stage; /* 0: inference */
    bool has_skips, is_accumulating, is_scaled, is_clipped;
    bool
        is_in_layers; /* rows are exchanged: twice in the forward pass, and once for each bucket in the backward one */
    /* what came out */
    struct cvy_strategy_input input; /* the device's number is of no use here */
    int32_t bucket_stage[CASE_MAX_BUCKETS];
    struct cvy_part parts[2][2 * CASE_MAX_BUCKETS + 3];
    struct cvy_program *program[CASE_MAX_DEVICES];
};

static inline void schedule_case_describe(struct schedule_case *c) {
    int32_t pipe = c->input.mesh.pipe;
    c->input.n_shards = c->n_shards;
    c->input.is_accumulating = c->is_accumulating;
    c->input.is_scaled = c->is_scaled;
    c->input.is_clipped = c->is_clipped;
    c->input.schedule = c->schedule ? c->schedule : "1f1b";
    for (int32_t a = 0; a < pipe; a++) {
        for (int32_t b = a + 1; b < pipe && b <= a + 1 + c->has_skips; b++) {
            c->input.sends[CVY_PHASE_FORWARD][a] |= UINT64_C(1) << b;
            c->input.sends[CVY_PHASE_BACKWARD][b] |= UINT64_C(1) << a;
        }
    }
    for (int32_t stage = pipe - 1; stage >= 0; stage--) {
        for (int32_t k = 0; k < c->n_buckets_of_stage; k++)
            c->bucket_stage[c->input.n_buckets++] = stage;
    }
    c->input.bucket_stage = c->bucket_stage;
}

/* Every other bucket is complete where rows are exchanged, too. */
static inline void schedule_case_cut(struct schedule_case *c) {
    struct cvy_part *forward = c->parts[CVY_PHASE_FORWARD], *backward = c->parts[CVY_PHASE_BACKWARD];
    int32_t n = 0;
    for (int32_t p = 0; p < 3; p++)
        forward[p] = (struct cvy_part){.bucket = -1, .is_exchange = p < 2};
    for (int32_t b = 0; b < c->input.n_buckets; b++) {
        backward[n++] = (struct cvy_part){.bucket = b, .is_exchange = true};
        backward[n++] = (struct cvy_part){.bucket = b, .is_bucket_end = true, .is_exchange = b % 2 == 1};
    }
    c->input.parts[CVY_PHASE_FORWARD] = forward;
    c->input.parts[CVY_PHASE_BACKWARD] = backward;
    c->input.n_parts[CVY_PHASE_FORWARD] = 3;
    c->input.n_parts[CVY_PHASE_BACKWARD] = n;
}

static inline void schedule_case_make(struct schedule_case *c) {
    const struct cvy_strategy *strategy = cvy_strategy_find(c->strategy);
    assert_non_null(strategy);
    assert_ok(strategy->mesh(c->n_devices, c->mesh, &c->input.mesh));
    schedule_case_describe(c);
    if (c->is_in_layers && c->input.n_buckets)
        schedule_case_cut(c);
    assert_ok(strategy->check(&c->input));
    for (int32_t d = 0; d < c->n_devices; d++) {
        c->input.device = d;
        c->program[d] = calloc(1, sizeof *c->program[d]);
        assert_non_null(c->program[d]);
        assert_ok(strategy->schedule(&c->input, c->program[d]));
    }
}

static inline void schedule_case_free(struct schedule_case *c) {
    for (int32_t d = 0; d < c->n_devices; d++)
        cvy_program_free(c->program[d]);
}

#endif
