/* Replays the training step of all devices from how long each instruction takes by itself: what a device waits for
   others follows from which instructions meet. So a step can be replayed with something else than what was recorded.

   A gate is where instructions meet. Some post there, when they begin or when they are done; others wait until all have
   posted. A recv waits for its send; an all-reduce for all replicas of a stage; what is told to all, for all. */
#ifndef CVY_ENGINE_REPLAY_H
#define CVY_ENGINE_REPLAY_H

#include "rt/program.h"

struct cvy_replay_instr {
    enum cvy_instr_kind kind;
    enum cvy_phase phase;
    int32_t shard, part, bucket; /* as in struct cvy_instr */
    double own_us;               /* what it took, waiting for others aside */
    int32_t posts, awaits;       /* gates, set by cvy_replay_link; -1: none */
    bool is_posted_at_end;
};

struct cvy_replay_device {
    int32_t stage, replica;
    CVY_VEC(struct cvy_replay_instr) instrs;
};

struct cvy_replay_gate {
    int32_t n_posts; /* instructions that post there */
};

struct cvy_replay { /* zero-initialised: empty */
    CVY_VEC(struct cvy_replay_device) devices;
    int32_t n_stages;
    bool
        is_between_processes; /* a courier adds as soon as all have handed in; else devices add when all wait */
    CVY_VEC(struct cvy_replay_gate) gates;
};

struct cvy_replay_result {
    double span_us;          /* until the last device is done */
    CVY_VEC(double) busy_us; /* of each device: the sum of what its instructions take by themselves */
};

/* Finds the gates. CVY_ERR_DATA: an instruction waits for what nobody does. Local. */
cvy_status cvy_replay_link(struct cvy_replay *replay);
/* Sets own_us of the linked instructions from `ends`, for each device when its step began and when each instruction
   ended, in ns: end - max(the end before it, the last post at its gate), at least 0. Adds to what there is. Local. */
cvy_status cvy_replay_add_own(struct cvy_replay *replay, const int64_t *const *ends);
/* Replays the step. CVY_ERR_DATA: instructions wait for each other. `out` is zero-initialised and freed by the caller
   with cvy_replay_result_free. Local. */
cvy_status cvy_replay_run(const struct cvy_replay *replay, struct cvy_replay_result *out);
void cvy_replay_result_free(struct cvy_replay_result *result);
/* A deep copy, to be changed. Local. */
cvy_status cvy_replay_copy(const struct cvy_replay *replay, struct cvy_replay *out);
void cvy_replay_free(struct cvy_replay *replay);

#endif
