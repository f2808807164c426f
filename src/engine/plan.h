/* A plan: graph, devices and strategy bound together; and what the engine's files share of it. */
#ifndef CVY_ENGINE_PLAN_H
#define CVY_ENGINE_PLAN_H

#include "engine/state.h"
#include "engine/worker.h"
#include "strategy/strategy.h"

struct cvy_plan {
    cvy_plan_options options; /* texts copied into the pool, defaults filled in */
    struct cvy_pool pool;
    const struct cvy_backend *backend;
    const struct cvy_strategy *strategy;
    int n_devices, n_threads; /* of all processes; of one device */
    int n_asked;              /* n_devices and those that is_elastic left out */
    int32_t first_device;     /* of this process, which has team.n of them */
    struct cvy_mesh mesh;
    char *device_names;              /* "cpu:0-1" */
    int64_t rule_batch;              /* the largest shard */
    cvy_dtype low;                   /* what --amp computes in; CVY_F32: all does */
    struct cvy_graph *built;         /* a copy of the user's */
    struct cvy_graph *fused, *train; /* before and after autodiff and update; NULL without optimiser */
    struct cvy_graph *evaluation;
    struct cvy_graph *resized; /* `train` for images of another size, see cvy_plan_resize; NULL: none */
    struct cvy_team team;
    struct cvy_group **groups;   /* of all devices: a handle each; NULL for those of other processes */
    struct cvy_group **replicas; /* of those with the same stage: mesh.data handles for each stage */
    struct cvy_store *stores;    /* of each stage: what there is, whichever process has it */
    bool is_used;                /* a session exists */
    bool is_fitting;             /* every device's arena fits options.device_memory */
    bool skips;                  /* options.on_nan: an update with numbers that are not finite is left out */
    bool is_tight;               /* stages are cut to fit options.device_memory rather than for speed alone */
};

/* ---- plan.c ---- */

/* Sees that the workers, none of them at work, have a group to talk in: a new one after a failure, since a group
   that somebody gave up stays so. Local. */
cvy_status cvy_plan_connect(struct cvy_plan *plan);
void cvy_plan_disconnect(struct cvy_plan *plan);
/* Gives the worker's groups its device, where a device transport serves them. Local. */
void cvy_plan_attach(const struct cvy_worker *w);

/* cvy_plan_new, whatever memory the plan needs. Collective. */
cvy_status cvy_plan_make(const cvy_graph *graph, const cvy_plan_options *options, cvy_plan **out);

/* ---- graphs.c ---- */

/* Fused, train and evaluation, from `built`. Local. */
cvy_status cvy_plan_make_graphs(struct cvy_plan *plan);
void cvy_plan_free_graphs(struct cvy_plan *plan);
/* From now on training is of `graph`, the user's for images of another size, at most as large as the plan's own.
   Layouts of weights, stages, sums and the largest shard stay the plan's. CVY_ERR_USAGE: its parameters are others,
   so the model takes one size only; then nothing changes. Local. */
cvy_status cvy_plan_resize(struct cvy_plan *plan, const cvy_graph *graph);
/* The training graph of the present size. */
const struct cvy_graph *cvy_plan_training(const struct cvy_plan *plan);

/* ---- precision.c ---- */

/* Finds plan->low and plan->skips, once the backend is known. CVY_ERR_USAGE: there is no such precision, or not here.
   Local. */
cvy_status cvy_plan_choose_precision(struct cvy_plan *plan);
/* In mixed precision *g becomes the graph with casts; for training in float16 it gets the input "loss_scale". Local. */
cvy_status cvy_plan_add_casts(const struct cvy_plan *plan, struct cvy_graph **g, bool is_training);

/* ---- footprint.c ---- */

/* Of balance, without a limit. Local. */
struct cvy_stage_options cvy_plan_stage_options(const struct cvy_plan *plan);
/* Gives the nodes of the training graph their stages; of a tight plan by what they need, too. Local. */
cvy_status cvy_plan_cut_stages(const struct cvy_plan *plan, const struct cvy_op *optimizer,
                               struct cvy_graph *g);
/* Finds out whether each device's arena fits options.device_memory. Collective. */
cvy_status cvy_plan_measure(struct cvy_plan *plan);
/* If not: the error that says what the devices need, and which other strategies would fit. `asked` are the options as
   the user gave them. Collective. */
cvy_status cvy_plan_check_memory(const struct cvy_plan *plan, const cvy_plan_options *asked);
/* The largest memory of a device: what it takes, or will take. */
size_t cvy_plan_bytes(const struct cvy_plan *plan);
/* Of one worker: its bytes by what they are for. */
struct cvy_needs {
    size_t weights;     /* stored values (parameters, buffers, optimiser state) and their packed copies */
    size_t gradients;   /* with partial sums, and those of an update's earlier batches */
    size_t activations; /* of all shards in flight, and rows that they exchange */
    size_t workspace;   /* of the kernels */
    size_t other;       /* staging, messages to other stages, images as they come */
    size_t all;         /* their sum: cvy_worker_bytes, unless split calls made the arena larger */
};
struct cvy_needs cvy_worker_needs(const struct cvy_worker *worker);
/* Of the plan's devices of this process, the one that needs the most. */
const struct cvy_worker *cvy_plan_largest(const struct cvy_plan *plan);
/* Before anything is allocated in host memory: CVY_ERR_MEMORY, by category, when the devices of this process need more
   than this machine or its cgroup has left. With device_memory, whoever gave it decides: CVY_OK. Local. */
cvy_status cvy_plan_check_free(const struct cvy_plan *plan, double n_free);

/* ---- explain.c ---- */

/* Forward operators of a stage, and its share (0 to 1) of the estimated time. Local. */
int cvy_plan_stage_layers(const struct cvy_plan *plan, int32_t stage, double *share);

/* ---- idle.c ---- */

/* Parameters without a gradient: returns how many, and adds the names of the first `most` to `names`. Local. */
int cvy_plan_idle(const struct cvy_plan *plan, int most, struct cvy_text *names);
/* Warns of them, if there are any, in the plan's log. Local. */
cvy_status cvy_plan_tell_idle(const struct cvy_plan *plan);

/* ---- share.c: who works on what ---- */

/* The process that has a device. */
int32_t cvy_plan_process(const struct cvy_plan *plan, int32_t device);
/* Are graph and options the same in all processes? CVY_ERR_USAGE if not. Collective. */
cvy_status cvy_plan_agree(const struct cvy_plan *plan);

/* ---- ports.c ---- */

/* Are the graph's named inputs and outputs those that the host fills and reads? Local. */
cvy_status cvy_ports_check(const struct cvy_graph *g);

/* ---- compile.c: graphs to programs. Run by the workers. ---- */

/* Layouts, store, schedules and the segments of the largest shard: everything but kernels and memory. */
cvy_status cvy_compile_program(struct cvy_worker *worker);
/* The graph of training or evaluation for shards of `size` images, layouts chosen. The caller frees *out. */
cvy_status cvy_choose_graph(const struct cvy_worker *worker, int64_t size, bool is_training,
                            struct cvy_graph **out);
/* Adds the segments for shards of `size` images, when they are not there. */
cvy_status cvy_compile_size(struct cvy_worker *worker, int64_t size, bool is_training);
/* The segment for this run; NULL when it was not compiled. */
struct cvy_segment *cvy_program_segment(const struct cvy_program *program, enum cvy_phase phase,
                                        bool is_training, int32_t part, int64_t shard_size);

/* A training forward segment, whatever its size: "loss" and "hits" lie in the same place in all. NULL: none. */
const struct cvy_segment *cvy_program_forward(const struct cvy_program *program);

/* ---- sizes.c ---- */

/* Compiles what a batch of n images will need, kernels too, so that the plan's bytes count it. Before there is a
   session. Local. */
cvy_status cvy_plan_announce(struct cvy_plan *plan, int64_t n, bool is_training);

/* ---- execute.c: programs to results. Run by the workers. ---- */

/* What one run of a schedule works on. */
struct cvy_work {
    const cvy_batch *batch;
    int64_t n;               /* images of the global batch */
    int64_t n_update, first; /* training: images of all batches of this update; of those before this one */
    uint64_t step;           /* updates done before; keys dropout */
    double lr;
    double scale;      /* of the loss, see scale.h; 0: none */
    int64_t n_skipped; /* of the updates done before: the optimiser has not seen them */
    bool is_split, is_training;
    float *losses; /* results of evaluation, or NULL */
    int32_t *ranks;
    float *logits;
    int64_t n_classes; /* row length of logits */
};
/* Kernels and memory for what has been compiled; keeps stored values. */
cvy_status cvy_execute_prepare(struct cvy_worker *worker, bool is_split);
/* Complete on return, also on a device with streams; after a failure the task's end sees to what is left (worker.c). */
cvy_status cvy_execute(struct cvy_worker *worker, const cvy_schedule *schedule, struct cvy_work *work);
/* The transport's number of the link between two stages of this program's replica. */
int cvy_link_number(const struct cvy_program *program, int32_t from_stage, int32_t to_stage);
/* One operator with a kernel. */
cvy_status cvy_execute_op(struct cvy_worker *worker, const struct cvy_segment *segment,
                          const struct cvy_prog_op *op, int32_t slot, int32_t sum);
/* What the arena takes for what is compiled; scratch counts once kernels are prepared. */
size_t cvy_arena_bytes(const struct cvy_worker *worker, bool is_split);
/* What images take on the device before they are an input tensor. */
size_t cvy_input_bytes(const struct cvy_worker *worker);
/* The device's memory: its arena, made or to be made, its links, and its images. */
size_t cvy_worker_bytes(const struct cvy_worker *worker, bool is_split);
void cvy_execute_release(struct cvy_worker *worker);
/* Images of shard s out of n_shards, and the first of them, in a batch of n. */
int64_t cvy_shard_size(int64_t n, int64_t n_shards, int64_t s);
int64_t cvy_shard_first(int64_t n, int64_t n_shards, int64_t s);
/* The operand behind a port; NULL: there is none, or no segment. */
const struct cvy_operand *cvy_segment_port(const struct cvy_segment *segment, const char *port);
/* The address of a port's operand, and the operand. NULL when the segment has no such port. */
void *cvy_port_address(const struct cvy_worker *worker, const struct cvy_segment *segment, const char *port,
                       int32_t slot, int32_t sum, const struct cvy_operand **operand);
void *cvy_place_address(const struct cvy_worker *worker, struct cvy_place place, int32_t slot, int32_t sum);

/* ---- links.c ---- */

/* Memory of the messages between this device's stage and others. */
size_t cvy_links_bytes(const struct cvy_worker *worker);
/* Opens the links to other stages, once for each group. */
cvy_status cvy_links_open(struct cvy_worker *worker);

/* ---- diagnose.c ---- */

/* Runs the forward pass again, operator by operator, and fails with the first that made a number that is not
   finite (of the lowest shard of this worker). CVY_OK when none did. */
cvy_status cvy_diagnose(struct cvy_worker *worker, struct cvy_work *work);

/* ---- stored.c ---- */

/* Plain values of a stored value on this worker's device, to and from the host. [owner] */
cvy_status cvy_stored_read(struct cvy_worker *worker, const struct cvy_stored *stored, void *host);
cvy_status cvy_stored_write(struct cvy_worker *worker, const struct cvy_stored *stored, const void *host);

/* The optimiser that the options name, and its attributes, for the update pass. */
cvy_status cvy_plan_optimizer(struct cvy_plan *plan, struct cvy_update_options *update);

#endif
