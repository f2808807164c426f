/* Strategies: where shards run and how devices are connected. A strategy writes the schedules of one device's
   program; what a segment computes, its layouts and fusions are fixed before, on the uncut graph. One file per
   strategy, one line in strategies.def. */
#ifndef CVY_STRATEGY_STRATEGY_H
#define CVY_STRATEGY_STRATEGY_H

#include "rt/program.h"

struct cvy_strategy_input {
    int32_t n_devices, device; /* device: which of them the program is for */
    int32_t n_shards;          /* S */
    int32_t n_buckets; /* of gradients; the backward pass is cut into as many parts. 0: inference only */
};

struct cvy_strategy {
    const char *name;
    const char *help; /* one line for --help */
    /* Refuses what cannot work, with the reason and what would. Local. */
    cvy_status (*check)(const struct cvy_strategy_input *input);
    /* Fills shards, partials, number of sums and slots, and all schedules of `out`. Local. */
    cvy_status (*schedule)(const struct cvy_strategy_input *input, struct cvy_program *out);
};

const struct cvy_strategy *cvy_strategy_find(const char *name); /* NULL when there is none */
const struct cvy_strategy *const *cvy_strategy_table(size_t *n);

/* ---- what strategies share (schedule.c) --------------------------------------------------------- */

/* An instruction of this kind with every number at "not used". */
struct cvy_instr cvy_instr_make(enum cvy_instr_kind kind);

/* The program's shards and partials by the tree, for replicas on all devices. */
cvy_status cvy_schedule_shards(const struct cvy_strategy_input *input, struct cvy_program *out);

/* Schedules for whole replicas: each device runs all of the graph for its shards, adding in the tree;
   `reduce`: an all-reduce of each bucket as soon as it is complete. */
cvy_status cvy_schedule_replica(const struct cvy_strategy_input *input, bool reduce, struct cvy_program *out);

#endif
