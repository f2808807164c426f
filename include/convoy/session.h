/* Processes, plans and sessions. See convoy.h. */
#ifndef CONVOY_SESSION_H
#define CONVOY_SESSION_H

#include <convoy/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- processes --------------------------------------------------------------------------------- */

/* The processes of one run, as each of them sees it: mpirun starts several, which then train one network together,
   with world size times the devices of one process. */
typedef struct cvy_world cvy_world;
/* Meets the other processes that the launcher (mpirun of Open MPI or MPICH) started with this one; without a launcher
   it makes a world of one. Once in a process, by its main thread, before the plans that name it. timeout_s is the
   deadline of this and of each later wait; 0: 30. `log` hears the moment another process is lost, from a thread of the
   world, before any wait ends with it: a launcher may not leave this process the time to say more. It may be NULL, and
   its context must outlive the world. CVY_ERR_LOST: a process did not come; CVY_ERR_UNSUPPORTED: the plugin
   for this launcher is not installed. Collective. */
CVY_API cvy_status cvy_world_open(double timeout_s, const cvy_log_sink *log, cvy_world **out);
/* After the plans that name it were freed. `status` CVY_OK: waits until all processes say so. Anything else: this
   process failed with cvy_error(), which ends every wait of the others with CVY_ERR_LOST; exit soon after. Accepts
   NULL. Collective, or after a failure Local. */
CVY_API cvy_status cvy_world_close(cvy_world *world, cvy_status status);
CVY_API int cvy_world_rank(const cvy_world *world); /* 0 … size - 1. NULL: 0. Local. */
CVY_API int cvy_world_size(const cvy_world *world); /* NULL: 1. Local. */

/* ---- plan and session -------------------------------------------------------------------------- */

typedef struct cvy_plan cvy_plan;
typedef struct cvy_session cvy_session;

typedef struct {
    const char *devices; /* "cpu:0-3", "cpu:0,cpu:1"; NULL, "auto": cpu:0. The permitted cores are shared out
                            among the devices of this list, in its order: one device has them all */
    bool is_elastic; /* those of the list that are not here are left out, if one is left; the log says so. The
                             default of `shards` counts them, so results are the same */
    const char *strategy; /* "single", "dp", "ddp", "mp", "pipeline", "hybrid"; NULL: single or ddp */
    const char *mesh;     /* hybrid: "data=2,pipe=2"; NULL elsewhere */
    const char *schedule; /* of pipelines: "gpipe", "1f1b"; NULL: 1f1b */
    const char *backend;  /* "cpu", "reference" (slow, in double precision); NULL: what the devices say */
    int64_t batch_size;   /* global, 1 to 2^31 - 1; every later batch is at most this */
    int64_t accumulate;   /* batches that may make one update, see cvy_step; 0: 1 */
    int64_t shards; /* S, parts of a step: S and T fix the bits; 0: one for each device, in pipelines four */
    bool sync_bn; /* batch-norm over all shards: of single, dp and ddp, which keep all shards' activations */
    bool recompute; /* make again in the backward pass what batch-norms gave: less memory, the same weights */
    int threads_per_device; /* T, at most 4096; 0: the device's cores */
    const char *conv_algo;  /* "auto", "direct", "winograd"; what `bench tune` found; NULL: auto */
    bool nondeterministic;  /* GPUs may add in any order: faster, but no two runs have the same bits */
    const char *amp; /* mixed precision: "bf16", "fp16"; NULL: none. Parameters are float32 in any case */
    bool tf32, no_graphs;  /* GPUs: products may round float32 to 10 bits (TF32); no CUDA graphs */
    int64_t device_memory; /* bytes that the plan may take on each device; 0: no limit */
    double bucket_mb, first_bucket_mb; /* 25 and 1: gradients that are all-reduced together, in MiB */
    const char *optimizer;             /* "sgd", "adamw"; NULL: inference only */
    const char *optimizer_attributes;  /* "momentum=0.9 weight_decay=5e-4", see `convoy train --help` */
    double clip_grad_norm; /* the norm of all gradients together is scaled down to this; 0: it stays */
    /* An update whose loss or a gradient is not finite: "stop" fails, "skip" leaves it out on all devices; NULL: stop,
       but only the loss is looked at. */
    const char *on_nan;
    const char *freeze; /* parameters that are not trained: "conv1.*,bn1.*"; NULL: none */
    uint64_t seed;      /* of initial weights and dropout */
    double timeout_s;   /* 30: deadline of each wait between devices */
    bool timeline;      /* record what every instruction took, for the project's own benchmarks */
    bool fast_reduce;   /* of GPUs with NCCL: sums in its order; results then depend on the number of GPUs */
    cvy_world *world;   /* the processes that take part, each with `devices`; NULL: this one alone */
    cvy_log_sink log;   /* its context must outlive the plan */
} cvy_plan_options;

/* Binds graph, devices and strategy: fusion, differentiation, layouts, programs, memory. Starts a thread for each
   device. The graph is copied. CVY_ERR_USAGE: an option (with the nearest name), a graph with an error, an input
   or output of the wrong form; and with an optimizer, no loss that depends on a parameter; a plan that needs more
   than device_memory (the error says how much, and which strategies would do with less). Nothing large is allocated.
   Parameters that the loss does not depend on are named in a warning: they get no gradient and keep their values.
   With a world, CVY_ERR_USAGE in all processes when they differ in options or graph: the first line that differs.
   Collective. */
CVY_API cvy_status cvy_plan_new(const cvy_graph *graph, const cvy_plan_options *options, cvy_plan **out);
/* After its session was freed. */
CVY_API void cvy_plan_free(cvy_plan *plan);
/* The text of `convoy explain`: pass is "build", "fuse", "autodiff", "choose", "program" or NULL for a summary.
   The caller frees *out with free(). CVY_ERR_USAGE: no such pass. Local. */
CVY_API cvy_status cvy_plan_explain(const cvy_plan *plan, const char *pass, char **out);
/* From its next epoch on, the loader reads only those images of each batch that this process's devices work on; the
   others' pixels are anything. All processes' parts together are the batch, none of it twice; the order, the labels
   and the number of batches stay those of the whole. Local. */
CVY_API cvy_status cvy_plan_share(const cvy_plan *plan, cvy_loader *loader);
/* Which images of a batch of n the device works on that is the k-th (0, 1, …) of this process's `devices`: *count of
   them from *first on, perhaps none. Stages of one pipeline work on the same ones. CVY_ERR_USAGE: there is no such
   device, or n is negative. Local. */
CVY_API cvy_status cvy_plan_images(const cvy_plan *plan, int k, int64_t n, int64_t *first, int64_t *count);

/* Allocates, and initialises the weights from the plan's seed, a function of seed and names alone. `plan` must
   outlive it and has one session at a time (CVY_ERR_USAGE); a later one starts afresh. Collective. */
CVY_API cvy_status cvy_session_new(cvy_plan *plan, cvy_session **out);
CVY_API void cvy_session_free(cvy_session *session);

/* The learning rate of the updates that follow; 0.1 until it is set. Local. */
CVY_API void cvy_session_set_lr(cvy_session *session, double lr);

/* One step of training, in one call or in three with the same bits: forward; backward, in which the gradients of
   all devices are added; update, which also clears them. The three keep the memory of all shards at once, which
   is made at the first cvy_forward. They must follow each other: another step or an evaluation in between ends
   the step.
   An update of several batches: each says in n_update how many images they have together, by which the loss is
   divided, and the plan's `accumulate` makes room for their sum. cvy_step updates with the last of them; or cvy_forward
   and cvy_backward run for each, which adds the gradients in this order, then cvy_update.
   A batch size that was not met before is compiled when it is met: some milliseconds, and more memory if it needs it.
     CVY_ERR_USAGE  the batch does not fit the plan (too large, other image shape, no labels where the loss needs
                    them), the plan has no optimizer, the learning rate is not finite, the order of the calls is
                    wrong. Nothing has changed; go on
     CVY_ERR_DATA   a label that is no class (where "logits" are named). Nothing has changed; go on
     CVY_ERR_NAN    the loss is not finite; cvy_step says which input or which operator it comes from, cvy_update
                    only that. Nothing was updated: the weights may be saved or evaluated
     CVY_ERR_LOST   a device did not come to a meeting before the deadline
   After the last two, and any other error, a session on several devices trains no more: free it, and make another
   from the same plan. Collective. */
CVY_API cvy_status cvy_step(cvy_session *session, const cvy_batch *batch);
CVY_API cvy_status cvy_forward(cvy_session *session, const cvy_batch *batch);
CVY_API cvy_status cvy_backward(cvy_session *session);
CVY_API cvy_status cvy_update(cvy_session *session);
/* Forgets the batches whose update has not come yet, as zero_grad() does. Local. */
CVY_API void cvy_discard(cvy_session *session);

/* What the newest cvy_step or cvy_backward gave, in training mode and before its update; of an update of several
   batches, for those of them that are in. */
typedef struct {
    double loss;        /* mean over the images */
    int64_t n;          /* images */
    int64_t top1, top5; /* images right by top-1 and top-5; 0 without the output "hits" */
    double grad_norm;   /* of the newest update, before clipping; 0 without clip_grad_norm */
} cvy_metrics;
/* All 0 before the first step. Local. */
CVY_API void cvy_session_metrics(const cvy_session *session, cvy_metrics *out);

/* Evaluation mode (running statistics, no dropout); changes no weights. losses[n] (may be NULL), ranks[n] = how many
   classes scored above the label, so that 0 is right, and at least 5 where a score is NaN (may be NULL), logits
   n x classes (may be NULL), in the batch's order; after an error they may be filled in part. A plan without
   optimizer will do. The batch is at most as large as the plan's; its labels may be NULL when losses and ranks are.
   CVY_ERR_USAGE: the batch does not fit, or the graph lacks the output; CVY_ERR_DATA: a label. Collective. */
CVY_API cvy_status cvy_evaluate(cvy_session *session, const cvy_batch *batch, float *losses, int32_t *ranks,
                                float *logits);

/* Weights (parameters and buffers) as safetensors with torchvision's names and shapes.
   Loading changes nothing unless all fits: CVY_ERR_DATA names the first tensor that is missing, unknown or misshapen,
   or says what is wrong with the file. The optimiser's state stays as it is. Collective. */
CVY_API cvy_status cvy_load_weights(cvy_session *session, const char *path);
/* Done by rank 0 alone; the file is whole or, after CVY_ERR_IO, as it was before. Collective. */
CVY_API cvy_status cvy_save_weights(cvy_session *session, const char *path);
/* xxh3 (64 bits) over names, shapes and values of all parameters and buffers, in name order. Collective. */
CVY_API cvy_status cvy_weights_hash(cvy_session *session, uint64_t *out);

#ifdef __cplusplus
}
#endif
#endif
