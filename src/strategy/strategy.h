/* Strategies: where shards run and how devices are connected. A strategy writes the schedules of one device's
   program; what a segment computes, its layouts and fusions are fixed before, on the uncut graph. One file per
   strategy, one line in strategies.def. */
#ifndef CVY_STRATEGY_STRATEGY_H
#define CVY_STRATEGY_STRATEGY_H

#include "rt/program.h"

/* Devices as a grid: device r is stage r % pipe of replica r / pipe. */
struct cvy_mesh {
    int32_t data, pipe;
};

/* A part of a pass. Passes are cut where shards exchange rows (see ops/batch_norm.h), and backward passes also where a
   bucket is complete. */
struct cvy_part {
    int32_t end;        /* the graph's node that is its last */
    int32_t bucket;     /* of a backward pass: which one it works on; -1 */
    bool is_bucket_end; /* and completes */
    bool is_exchange;   /* at its end rows go round */
};

enum { CVY_MAX_STAGES = 64 };

struct cvy_strategy_input {
    struct cvy_mesh mesh;
    int32_t device;       /* which device the program is for */
    int32_t n_shards;     /* S */
    bool is_accumulating; /* several batches can make one update */
    bool is_scaled;       /* an update is skipped when gradients are not finite: all are reduced before it */
    bool is_clipped;      /* the norm of all gradients is clipped before an update */
    int32_t n_buckets;    /* of all stages. 0: inference only */
    const int32_t *bucket_stage; /* n_buckets: the stage whose parameters it holds */
    const char *schedule;        /* "gpipe" or "1f1b" */
    /* bit b of sends[phase][a]: stage a makes values in this phase (forward, backward) that stage b reads */
    uint64_t sends[2][CVY_MAX_STAGES];
    /* where shards exchange rows: the parts of each phase; none: a forward pass is one part, a backward pass one for
       each bucket */
    const struct cvy_part *parts[2];
    int32_t n_parts[2];
};

struct cvy_strategy {
    const char *name;
    const char *help;    /* one line for --help */
    bool has_schedules;  /* runs gpipe or 1f1b, as the user says */
    bool is_in_layers;   /* can run each layer for all shards before the next one, as --sync-bn needs */
    bool is_one_process; /* all devices belong to one process */
    /* The grid over n devices; `asked` is what the user said ("data=2,pipe=2"), or NULL. Refuses what cannot work,
       with the reason and what would. Local. */
    cvy_status (*mesh)(int32_t n_devices, const char *asked, struct cvy_mesh *out);
    /* Refuses shards that do not fit the mesh. Local. */
    cvy_status (*check)(const struct cvy_strategy_input *input);
    /* Fills shards, partials, number of sums and slots, and all schedules of `out`. Local. */
    cvy_status (*schedule)(const struct cvy_strategy_input *input, struct cvy_program *out);
};

const struct cvy_strategy *cvy_strategy_find(const char *name); /* NULL when there is none */
const struct cvy_strategy *const *cvy_strategy_table(size_t *n);

/* ---- what strategies share ----------------------------------------------------------------------- */

/* An instruction of this kind with every number at "not used". */
struct cvy_instr cvy_instr_make(enum cvy_instr_kind kind);

/* How a device runs the passes of its n shards (0 .. n-1), and who updates. */
struct cvy_order {
    int32_t n_slots; /* shards in flight */
    int32_t n_ahead; /* forward passes before the first backward one, 1 or more */
    bool
        is_on_master; /* parameters live on the first replica, which alone updates; the others get them each step */
};
/* Schedules of a device that runs its stage of the mesh for its replica's shards. */
cvy_status cvy_schedule_write(const struct cvy_strategy_input *input, struct cvy_order order,
                              struct cvy_program *out);

/* Gives a schedule of `program` the events that make it right on a device with several streams, and no wait that
   says nothing new. What stood there is replaced. Local. */
cvy_status cvy_events_write(const struct cvy_program *program, cvy_schedule *schedule);

/* "every replica needs a shard" */
cvy_status cvy_check_shards(const struct cvy_strategy_input *input);
/* Refuses a mesh that was asked for where the strategy has no choice. */
cvy_status cvy_check_no_mesh(const char *strategy, const char *asked);

#endif
