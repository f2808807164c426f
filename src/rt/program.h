/* A program: what one device does in one step. Two levels.
   Segments are flat lists of prepared operators, one per (stage, phase, part, shard size); their operands are
   addresses relative to a space, so that one segment serves every shard slot and every partial sum.
   The schedule is a list of instructions that run segments for shards and connect devices. */
#ifndef CVY_RT_PROGRAM_H
#define CVY_RT_PROGRAM_H

#include "base/vec.h"
#include "graph/graph.h"
#include "rt/backend.h"

enum cvy_space {
    CVY_SPACE_NONE,    /* absent operand */
    CVY_SPACE_PERSIST, /* parameters, buffers, optimiser state, hypers */
    CVY_SPACE_PACKED,  /* copies of parameters in the layouts that kernels want: remade by REFRESH nodes */
    CVY_SPACE_SUM, /* gradient buckets: sum k lies at sum_bytes * k; sum 0 is where the reduced result ends */
    CVY_SPACE_TOTAL,   /* the results of an update's earlier batches, added up; laid out as one sum */
    CVY_SPACE_SLOT,    /* activations of one shard in flight: slot k lies at slot_bytes * k */
    CVY_SPACE_ROWS,    /* what shards exchange within a pass: the rows of all, one behind the other */
    CVY_SPACE_ROW,     /* the same memory: the running shard's row, at n_bytes * shard behind the offset */
    CVY_SPACE_SCRATCH, /* workspace of the running kernel */
    CVY_N_SPACES,
};

struct cvy_place {
    enum cvy_space space;
    size_t offset, n_bytes;
};

struct cvy_operand {
    const char *name; /* of the graph's value */
    struct cvy_operand_spec spec;
    struct cvy_place place;
};

struct
    cvy_port { /* an operand that is reached from outside: by the host, "images", "labels", "divisor", "rng",
                     "hyper", "loss", "hits", "losses", "ranks", "logits"; by messages, "to:2" and "from:0" name what
                     goes to stage 2 and comes from stage 0, in the same order on both sides */
    const char *name;
    int32_t operand; /* index into the segment's operands */
};

struct cvy_prog_op { /* one operator of a segment */
    const struct cvy_op *op;
    const char *name;
    const void *attrs;
    int32_t algorithm;
    enum cvy_phase phase;
    uint32_t id;
    int n_in, n_out;
    int32_t *in, *out; /* indices into the segment's operands; -1: absent */
    /* set by prepare */
    struct cvy_kernel *kernel;
    size_t scratch_bytes;
};

struct cvy_segment {
    const char
        *name; /* "F0/32", "B0.2/32", "E0/32", "U1", "R" (refresh for training), "RE" (for evaluation) */
    enum cvy_phase phase;
    bool is_training;
    int32_t stage,
        part; /* part: of a pass cut where rows are exchanged, of a backward one also at bucket borders; for
                            updates the bucket */
    int64_t shard_size; /* images; 0 for updates, which do not depend on it */
    int64_t rule_batch;
    CVY_VEC(struct cvy_operand) operands;
    CVY_VEC(struct cvy_prog_op) ops;
    CVY_VEC(struct cvy_port) ports;
};

enum cvy_instr_kind {
    CVY_I_LOAD, /* images and labels of `shard` into `slot` */
    CVY_I_RUN, /* segment (phase, stage, part) for `shard` in `slot`, gradients into `sum`; `bucket`: the one that a
                  backward pass works on, -1: part's number */
    CVY_I_EXCHANGE, /* every device gets the rows of all shards that (phase, stage, part) ends with. Collective */
    CVY_I_ADD,      /* bucket of sum `sum` += bucket of sum `from` (the tree's order: lower shard first) */
    CVY_I_SEND,     /* `phase`'s values of `shard` that stage `part` reads, to that stage */
    CVY_I_RECV,     /* the same, from stage `part` */
    CVY_I_REDUCE, /* start the all-reduce of `bucket` into `sum`; -1: this device needs no result. Collective */
    CVY_I_WAIT, /* wait for it. Collective. Of asynchronous devices the event says when; it does nothing itself */
    CVY_I_ACCUMULATE, /* `bucket` of sum 0 and the update's total: unless this batch is the update's last, it joins the
                         total; of the last one it becomes the sum of both. Alone in its update it stays as it is */
    CVY_I_CHECK, /* the reduced loss must be finite, before anything is updated */
    CVY_I_FINITE, /* are all reduced gradients finite? Else the updates that follow are skipped, on every stage */
    CVY_I_CLIP, /* the norm of all reduced gradients, of every stage; where it is too large they are scaled down */
    CVY_I_UPDATE, /* run the update segment of `bucket` */
    CVY_I_RESULT, /* copy the shard's results (losses, ranks, logits) to the host */
    CVY_I_BROADCAST, /* `part` 0: the persistent space, 1: parameters and buffers, from the first replica to all of
                        this stage. Collective */
    CVY_I_REFRESH, /* run the REFRESH segment (`part` 0: training's copies, 1: evaluation's, if weights changed) */
    CVY_N_INSTR,
};

/* Streams run at the same time, each in its order: computing, and talking with other devices. */
enum { CVY_STREAM_COMPUTE, CVY_STREAM_TALK, CVY_N_STREAMS };

struct cvy_instr {
    enum cvy_instr_kind kind;
    enum cvy_phase phase;                                /* RUN */
    int32_t stage, part, shard, slot, sum, from, bucket; /* -1 where not used */
    int32_t stream;                                      /* CVY_STREAM_... */
    uint64_t
        wait_events; /* bit e: before it runs, the newest record of event e above it must have happened */
    int32_t record_event; /* happens when it, and all above it in its stream, are complete; -1: none */
};

typedef CVY_VEC(struct cvy_instr) cvy_schedule;

/* A partial sum that a device is left with: the subtree of shards first .. first + 2^level - 1 (cut at S). */
struct cvy_partial {
    int32_t first, level, device, sum;
};

struct cvy_bucket {
    size_t offset, n_floats; /* within a sum buffer, bytes and elements; includes padding, which is zero */
};

struct cvy_program {
    int32_t device, n_devices;        /* rank within the run */
    int32_t replica, stage, n_stages; /* place in the mesh: device = replica * n_stages + stage */
    int32_t n_shards;
    int32_t first_shard, n_local_shards;
    CVY_VEC(struct cvy_segment) segments;
    cvy_schedule train;                     /* the strategy's own step: a batch, and the update */
    cvy_schedule accumulate;                /* the same without the update, which a later batch will bring */
    cvy_schedule forward, backward, update; /* split calls; backward keeps all slots */
    cvy_schedule evaluate;
    cvy_schedule start; /* once, and after loading weights */
    CVY_VEC(struct cvy_bucket) buckets;
    CVY_VEC(struct cvy_partial) partials; /* of all devices, the same on each */
    size_t persist_bytes, packed_bytes, sum_bytes, slot_bytes, scratch_bytes;
    size_t rows_bytes;       /* of what shards exchange; 0: nothing. Then shard s is in slot s - first */
    size_t total_bytes;      /* sum_bytes when several batches can make an update, else 0 */
    int32_t n_sums, n_slots; /* partial sums and shards in flight: the strategy's own step */
    int32_t n_sums_split, n_slots_split; /* the same for split calls */
    struct cvy_pool pool;
};

/* Removes the segments of training that depend on the shard's size. No call of a kernel may be under way. */
void cvy_program_drop_training(struct cvy_program *program);
void cvy_program_free(struct cvy_program *program); /* releases kernels too */
/* Total of the arena. */
size_t cvy_program_bytes(const struct cvy_program *program);
const char *cvy_instr_name(enum cvy_instr_kind kind);

/* Every operator is called as it may be, with the shapes that it infers; every place lies within its space, every
   index within its table. Names the first thing that is not so. */
cvy_status cvy_program_verify(const struct cvy_program *program);

/* Text form (see rt/program_text.h); parse(print(p)) runs the same. `backend` prints layouts, the device finds them
   by name, as operators are found. What was parsed is verified, and must be prepared to run. */
cvy_status cvy_program_print(const struct cvy_program *program, const struct cvy_backend *backend,
                             struct cvy_text *out);
cvy_status cvy_program_parse(const char *text, struct cvy_device *device, struct cvy_program **out);

/* Chooses nothing: makes each operator's kernel for the layouts that stand in the segment; sets scratch_bytes.
   Kernels that are there stay, so segments can be added and prepared later. Views and collectives get none.
   [owner] */
cvy_status cvy_program_prepare(struct cvy_program *program, struct cvy_device *device);

#endif
