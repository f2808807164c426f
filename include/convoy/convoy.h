/* Convoy: trains image-recognition networks on many devices, with the same bits on any number of them.
 *
 * The whole public interface; examples/ shows it at work. The way from a network to a run:
 *     cvy_graph    what is computed for a batch of images: layers, loss, named results
 *     cvy_plan     the graph bound to devices and a strategy
 *     cvy_session  the plan with weights and memory: it trains and evaluates
 *     cvy_loader   brings batches out of a cvy_dataset; or a program makes its own cvy_batch
 *
 * Conventions:
 *  - Functions that can fail return cvy_status; results come through the last parameters, untouched on
 *    failure unless said otherwise. The text of a thread's newest error is cvy_error(). Any of them may
 *    fail with CVY_ERR_MEMORY; the other codes are said.
 *  - Handles are opaque. What cvy_X_new or cvy_X_open made, cvy_X_free releases; _free accepts NULL. Texts and
 *    arrays that are passed in stay the caller's, and are copied where they are needed longer.
 *  - Pointers must be valid; NULL is allowed where it is said.
 *  - A field of an options or args struct that is 0 or NULL means the default that is given behind it.
 *  - Shapes are N,C,H,W: images, channels, height, width. Sizes of memory are in bytes, times in seconds.
 *  - "Collective": every process of the run must call it, in the same order. "Local": any process may.
 *    What says neither is Local.
 *  - One thread at a time may use a handle, or handles that were made of each other (a plan and its session, a
 *    data set's loader). Others are independent. Loaders of one data set may run in different threads.
 */
#ifndef CONVOY_H
#define CONVOY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CVY_VERSION "0.1.0"
#define CVY_API __attribute__((visibility("default")))

/* ---- errors ------------------------------------------------------------------------------------ */

typedef enum {
    CVY_OK = 0,
    CVY_ERR_FAILED = 1,      /* anything without a code of its own */
    CVY_ERR_USAGE = 2,       /* the call or the command line is wrong */
    CVY_ERR_DATA = 3,        /* a file, an image, a label or a weight is wrong */
    CVY_ERR_LOST = 4,        /* a device or rank is lost or late */
    CVY_ERR_MEMORY = 5,      /* out of memory */
    CVY_ERR_IO = 6,          /* the operating system refused to read or write */
    CVY_ERR_NAN = 7,         /* a loss or weight is not finite */
    CVY_ERR_UNSUPPORTED = 8, /* right, but not available here */
    CVY_END = 100,           /* not an error: nothing left in this epoch */
    CVY_INTERRUPTED = 130,   /* stopped by the user after a checkpoint */
} cvy_status;

/* The newest error of this thread: one line, "what, where, what to do". "" when there was none. Success does not
   clear it, CVY_END does not set it. Valid until this thread's next error. Local. */
CVY_API const char *cvy_error(void);
/* The places that passed it on, "file:line < file:line", innermost first. Valid as long. Local. */
CVY_API const char *cvy_error_trace(void);
/* The exit code that a program should end with: 0 for CVY_OK and CVY_END, 2 wrong usage, 3 bad data, 4 a device or
   rank lost, 130 interrupted, else 1. Local. */
CVY_API int cvy_exit_code(cvy_status status);

typedef enum { CVY_LOG_INFO, CVY_LOG_WARNING } cvy_log_level;
/* Where remarks go: the library itself never prints. `write` gets one line without its end, valid during the call,
   and may be called from any thread, several at once; NULL: remarks are dropped. */
typedef struct {
    void (*write)(void *context, cvy_log_level level, const char *line);
    void *context; /* the user's */
} cvy_log_sink;

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

/* ---- graphs ------------------------------------------------------------------------------------ */

typedef enum { CVY_F32, CVY_F64, CVY_BF16, CVY_F16, CVY_I32, CVY_I64, CVY_U8 } cvy_dtype;

/* A graph of operators over one batch. Builder calls return values; after an error they return CVY_NONE
   and do nothing, and cvy_graph_status (or whatever uses the graph next) reports the first one. All are Local. */
typedef struct cvy_graph cvy_graph;
typedef int32_t cvy_value; /* of the graph that made it */
#define CVY_NONE ((cvy_value)-1)

CVY_API cvy_status cvy_graph_new(cvy_graph **out);
CVY_API void cvy_graph_free(cvy_graph *graph);
/* The first error of the builder calls, as status and in cvy_error(); CVY_OK when there was none. */
CVY_API cvy_status cvy_graph_status(const cvy_graph *graph);

/* The images of a batch: float32, shape N,C,H,W, where N is set later. `name` is "images": nothing would fill
   another input, and cvy_plan_new refuses it. */
CVY_API cvy_value cvy_input(cvy_graph *graph, const char *name, int64_t channels, int64_t height,
                            int64_t width);
/* The labels of a batch: int64, shape N. */
CVY_API cvy_value cvy_labels(cvy_graph *graph);
/* Names a result. These names mean something:
     "loss"    float32, shape 1: what training differentiates, and cvy_metrics.loss
     "hits"    float32, shape 2: counts that are summed over the batch: cvy_metrics.top1 and top5
     "losses"  float32, shape N; "ranks": int32, shape N; "logits": float32, shape N,...: what cvy_evaluate gives
   cvy_cross_entropy names all of them but the logits. A name that is set again means the new value. */
CVY_API void cvy_output(cvy_graph *graph, const char *name, cvy_value value);
/* Layers built from here on belong to stage k (0, 1, …) of a model-parallel or pipelined run; other strategies do
   not look at it. */
CVY_API void cvy_stage(cvy_graph *graph, int stage);

/* Layers. Parameters take torch.nn's names ("NAME.weight", "NAME.bias", …), shapes, defaults and initial
   distributions. NAME must be the layer's own; NULL: the operator's, numbered where it is taken ("conv2d",
   "conv2d#2", …). Names have no blanks and none of @ , ; = ( ) [ ]. Sizes that do not fit are CVY_ERR_USAGE. */
typedef struct {
    const char *name;
    int64_t out_channels; /* at least 1 */
    int64_t kernel;       /* square; or kernel_hw */
    int64_t kernel_hw[2];
    int64_t stride;   /* 1 */
    int64_t padding;  /* 0: zeros on each side */
    int64_t dilation; /* 1 */
    int64_t groups;   /* 1; must divide both numbers of channels */
    bool no_bias;     /* false: a bias */
} cvy_conv2d_args;
/* N,C,H,W to N,out_channels,H',W' with H' = floor((H + 2 padding - dilation (kernel - 1) - 1) / stride) + 1. */
CVY_API cvy_value cvy_conv2d(cvy_graph *graph, cvy_value x, const cvy_conv2d_args *args);

typedef struct {
    const char *name;
    int64_t out_features; /* at least 1 */
    bool no_bias;         /* false: a bias */
} cvy_linear_args;
/* On the last dimension of x, whatever its rank: …,in to …,out_features. */
CVY_API cvy_value cvy_linear(cvy_graph *graph, cvy_value x, const cvy_linear_args *args);

typedef struct {
    const char *name;
    double eps;      /* 1e-5 */
    double momentum; /* 0.1: weight of a step's statistics in the running ones */
} cvy_batch_norm_args;
/* N,C,… to the same shape, channel by channel: in training with the statistics of the shard (see
   cvy_plan_options.shards and sync_bn), in evaluation with the running ones, which advance once per update. */
CVY_API cvy_value cvy_batch_norm(cvy_graph *graph, cvy_value x, const cvy_batch_norm_args *args);

typedef struct {
    const char *name;
    int64_t kernel;       /* square, at least 1 */
    int64_t stride;       /* kernel */
    int64_t padding;      /* 0; at most half the kernel */
    bool ceil_mode;       /* false: a window that does not fit whole is left out */
    bool exclude_padding; /* avg_pool: false counts the padding, as torch does */
} cvy_pool_args;
/* N,C,H,W to N,C,H',W' with H' = floor, or ceil, of (H + 2 padding - kernel) / stride, plus 1. */
CVY_API cvy_value cvy_max_pool(cvy_graph *graph, cvy_value x, const cvy_pool_args *args);
CVY_API cvy_value cvy_avg_pool(cvy_graph *graph, cvy_value x, const cvy_pool_args *args);
/* N,C,H,W to N,C,height,width, whatever H and W. */
CVY_API cvy_value cvy_adaptive_avg_pool(cvy_graph *graph, cvy_value x, int64_t height, int64_t width);

/* max(x, 0), any shape. */
CVY_API cvy_value cvy_relu(cvy_graph *graph, cvy_value x);
/* a + b, of one shape. */
CVY_API cvy_value cvy_add(cvy_graph *graph, cvy_value a, cvy_value b);
/* N,… to N,rest. */
CVY_API cvy_value cvy_flatten(cvy_graph *graph, cvy_value x);
/* Zero with probability p (0 to 1), else x / (1 - p); in evaluation x. Any shape N,…. */
CVY_API cvy_value cvy_dropout(cvy_graph *graph, cvy_value x, double p);
/* Over the last dimension. */
CVY_API cvy_value cvy_softmax(cvy_graph *graph, cvy_value x);
/* Over all dimensions but N: N,… to N. */
CVY_API cvy_value cvy_mean(cvy_graph *graph, cvy_value x);

/* A loss of your own making: the sum over the images of x, shape N, divided by the global batch; shape 1. Name it
   with cvy_output(graph, "loss", …). */
CVY_API cvy_value cvy_batch_mean(cvy_graph *graph, cvy_value x);
/* The usual loss, shape 1: the batch's mean of -log softmax(logits)[label], where label_smoothing (0 to 1) is the
   share of the target that goes to all classes. logits: N,classes; labels: N, 0 … classes - 1.
   Names the outputs "loss", "losses", "ranks" and "hits" by itself. Auxiliary heads (googlenet) join the loss. */
CVY_API cvy_value cvy_cross_entropy(cvy_graph *graph, cvy_value logits, cvy_value labels,
                                    double label_smoothing);

/* Any operator by its name, with attributes as text: cvy_apply(g, "max_pool", "l.pool", &x, 1, "kernel=2x2").
   n inputs, CVY_NONE where an optional one is absent; `attributes` may be NULL: the defaults; `name` may be NULL.
   Returns the operator's first output. src/ops/ops.def lists the operators. */
CVY_API cvy_value cvy_apply(cvy_graph *graph, const char *op, const char *name, const cvy_value *inputs,
                            int n, const char *attributes);

/* A model of `convoy models` by its name: adds its layers, with torchvision's names and initial distributions, and
   returns the logits, N,num_classes (model "simple": N,1,H-2,num_classes). It names no output and adds no loss. */
CVY_API cvy_value cvy_model(cvy_graph *graph, const char *name, cvy_value images, int64_t num_classes);

/* ---- data -------------------------------------------------------------------------------------- */

typedef struct cvy_dataset cvy_dataset;
typedef struct cvy_loader cvy_loader;

typedef enum { CVY_SPLIT_TRAIN, CVY_SPLIT_VAL } cvy_split;

/* Opens one split of a data spec, such as digits, folder:DIR or csv:FILE; `convoy data` lists the formats. `log` may
   be NULL; it is used during the call. CVY_ERR_USAGE: the spec is wrong; CVY_ERR_DATA: what it names is missing or
   wrong. Local. */
CVY_API cvy_status cvy_dataset_open(const char *spec, cvy_split split, const cvy_log_sink *log,
                                    cvy_dataset **out);
/* n image files (JPEG, PNG, WebP) without labels, in this order, as `convoy predict` reads them. They are opened when
   a loader reads them. CVY_ERR_USAGE: n < 1. Local. */
CVY_API cvy_status cvy_dataset_open_files(const char *const *paths, int64_t n, cvy_dataset **out);
CVY_API void cvy_dataset_free(cvy_dataset *dataset);
/* Images. */
CVY_API int64_t cvy_dataset_size(const cvy_dataset *dataset);
/* Classes: labels are 0 … this - 1. 0 where there are no labels. */
CVY_API int64_t cvy_dataset_classes(const cvy_dataset *dataset);
/* Name of class k, the data set's own; NULL when there is no such class. */
CVY_API const char *cvy_dataset_class_name(const cvy_dataset *dataset, int64_t k);
/* Natural size of an image; 0 for height and width when the images' sizes vary. */
CVY_API void cvy_dataset_image_size(const cvy_dataset *dataset, int64_t *channels, int64_t *height,
                                    int64_t *width);

typedef enum { CVY_NCHW, CVY_NHWC } cvy_image_order;

/* Plain images and labels of one global batch. A loader's are its own, valid until its next cvy_loader_next or
   cvy_loader_start; one that a program makes must be there during each call that it is given to. */
typedef struct cvy_batch {
    int64_t n, channels, height, width; /* at most 4 channels */
    int64_t n_update;      /* training: images of all batches of the update which this one belongs to; 0: n */
    cvy_dtype dtype;       /* CVY_U8 (0 to 255) or CVY_F32 */
    cvy_image_order order; /* of the images' memory, which has no gaps */
    const void *images;
    const int64_t *labels;  /* n, or NULL where none are needed */
    const int64_t *indices; /* n: position of each image in its data set; for the caller's use, may be NULL */
    float mean[4], std[4];  /* the device computes (x / 255 (u8 only) - mean) / std; std 0 counts as 1 */
} cvy_batch;

typedef struct {
    int64_t batch_size; /* global, at least 1 */
    int64_t accumulate; /* batches of one update; at the end of an epoch there may be fewer; 0: 1 */
    int workers;        /* decoding threads, which work up to two batches ahead; 0: in the calling thread */
    uint64_t seed;
    bool shuffle, augment; /* augment: training transforms, else evaluation's */
    const char *preset;    /* of augmentation: "none", "cifar", "imagenet"; NULL: what suits the data */
    int64_t resize;        /* shorter side (u8 images); 0: none, or the crop's longer side where sizes vary */
    int64_t crop[2];       /* height, width of what comes out, from the centre; 0: resize, else all */
    int64_t pad;           /* training crops at random after this zero padding; -1: the preset's */
    int flip;              /* training mirrors with probability 1/2: 1, 0, or -1: the preset's */
    float color_jitter[4]; /* of training, ranges: brightness, contrast, saturation, hue (to 0.5); 0: none */
    const char *auto_augment; /* of training: "ra", "ta_wide"; NULL: none */
    int ra_magnitude;         /* of "ra", 0 to 30 */
    double random_erase;      /* training sets a random box to the mean with this probability, 0 to 1 */
    bool has_mean_std;        /* false: what suits the data, else mean 0 and std 1 */
    float mean[4], std[4];
    int64_t channels; /* 1: u8 images in colour become grey (ITU-R 601); 0: as they are */
} cvy_loader_options;
/* The defaults, to begin with (not all are 0): batches of 32, 2 workers, shuffled, augmented as suits the data. */
CVY_API void cvy_loader_defaults(cvy_loader_options *options);
/* `dataset` must outlive the loader. No batch is larger than the set. CVY_ERR_USAGE: an option does not fit the
   data, or `augment` and the batch is larger than the set; CVY_ERR_DATA: there is nothing to train on. Local. */
CVY_API cvy_status cvy_loader_new(const cvy_dataset *dataset, const cvy_loader_options *options,
                                  cvy_loader **out);
CVY_API void cvy_loader_free(cvy_loader *loader);
/* Image shape of every batch. */
CVY_API void cvy_loader_shape(const cvy_loader *loader, int64_t *channels, int64_t *height, int64_t *width);
/* Starts epoch e (0, 1, …), also in the middle of another: order and augmentation are functions of (seed, e) and
   the images' numbers alone. Without a start the loader is at an end. CVY_ERR_USAGE: e is negative. */
CVY_API cvy_status cvy_loader_start(cvy_loader *loader, int64_t epoch);
/* CVY_OK and a batch, or CVY_END: check which of the two ended your loop. The last batch of an epoch may be
   smaller. CVY_ERR_DATA names the file or the sample that is wrong, the first of the batch whatever the workers;
   CVY_ERR_LOST: no image could be read for two minutes. */
CVY_API cvy_status cvy_loader_next(cvy_loader *loader, cvy_batch *out);

/* ---- plan and session -------------------------------------------------------------------------- */

typedef struct cvy_plan cvy_plan;
typedef struct cvy_session cvy_session;

typedef struct {
    const char *devices;  /* "cpu:0-3", "cpu:0,cpu:1"; NULL, "auto": cpu:0. The permitted cores are shared out
                            among the devices of this list, in its order: one device has them all */
    const char *strategy; /* "single", "dp", "ddp", "mp", "pipeline", "hybrid"; NULL: single or ddp */
    const char *mesh;     /* hybrid: "data=2,pipe=2"; NULL elsewhere */
    const char *schedule; /* of pipelines: "gpipe", "1f1b"; NULL: 1f1b */
    const char *backend;  /* "cpu", "reference" (slow, in double precision); NULL: what the devices say */
    int64_t batch_size;   /* global, 1 to 2^31 - 1; every later batch is at most this */
    int64_t accumulate;   /* batches that may make one update, see cvy_step; 0: 1 */
    int64_t shards; /* S, parts of a step: S and T fix the bits; 0: one for each device, in pipelines four */
    bool sync_bn; /* batch-norm over all shards: of single, dp and ddp, which keep all shards' activations */
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
    const char *freeze;    /* parameters that are not trained: "conv1.*,bn1.*"; NULL: none */
    uint64_t seed;         /* of initial weights and dropout */
    double timeout_s;      /* 30: deadline of each wait between devices */
    bool timeline;         /* record what every instruction took, for the project's own benchmarks */
    bool fast_reduce; /* of GPUs with NCCL: sums in its order; results then depend on the number of GPUs */
    cvy_world *world; /* the processes that take part, each with `devices`; NULL: this one alone */
    cvy_log_sink log; /* its context must outlive the plan */
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

/* CVY_VERSION of the library that runs, which need not be that of this header. Local. */
CVY_API const char *cvy_version(void);

#ifdef __cplusplus
}
#endif
#endif
