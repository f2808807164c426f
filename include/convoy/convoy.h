/* Convoy: trains image-recognition networks on many devices, with the same bits on any number of them.
 *
 * The whole public interface. Conventions:
 *  - Functions that can fail return cvy_status; results come through the last parameters, untouched on
 *    failure. The text of a thread's newest error is cvy_error().
 *  - Handles are opaque. What cvy_X_new or cvy_X_open made, cvy_X_free releases; _free accepts NULL.
 *  - Shapes are N,C,H,W: images, channels, height, width. Sizes of memory are in bytes, times in seconds.
 *  - "Collective": every process of the run must call it, in the same order. "Local": any process may.
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

/* The newest error of this thread: one line, "what, where, what to do". "" when there was none. Local. */
CVY_API const char *cvy_error(void);
/* The places that passed it on, "file:line < file:line", innermost first. Local. */
CVY_API const char *cvy_error_trace(void);
/* The exit code that a program should end with: 0, 1, 2, 3, 4 or 130. Local. */
CVY_API int cvy_exit_code(cvy_status status);

typedef enum { CVY_LOG_INFO, CVY_LOG_WARNING } cvy_log_level;
/* Where remarks go; `write` may be called from any thread. */
typedef struct {
    void (*write)(void *context, cvy_log_level level, const char *line);
    void *context;
} cvy_log_sink;

/* ---- graphs ------------------------------------------------------------------------------------ */

typedef enum { CVY_F32, CVY_F64, CVY_BF16, CVY_F16, CVY_I32, CVY_I64, CVY_U8 } cvy_dtype;

/* A graph of operators over one batch. Builder calls return values; after an error they return CVY_NONE
   and do nothing, and cvy_graph_status (or whatever uses the graph next) reports the first one. */
typedef struct cvy_graph cvy_graph;
typedef int32_t cvy_value;
#define CVY_NONE ((cvy_value)-1)

CVY_API cvy_status cvy_graph_new(cvy_graph **out);
CVY_API void cvy_graph_free(cvy_graph *graph);
CVY_API cvy_status cvy_graph_status(const cvy_graph *graph);

/* An input of the model: float32, shape N,C,H,W, where N is set later. `name` is "images" for what the
   loader brings. */
CVY_API cvy_value cvy_input(cvy_graph *graph, const char *name, int64_t channels, int64_t height,
                            int64_t width);
/* The labels: int64, shape N. */
CVY_API cvy_value cvy_labels(cvy_graph *graph);
/* Names a result: "loss" is what training differentiates; "logits" is what evaluation and predict read. */
CVY_API void cvy_output(cvy_graph *graph, const char *name, cvy_value value);
/* Layers built from here on belong to stage k (0, 1, …) of a model-parallel or pipelined run. */
CVY_API void cvy_stage(cvy_graph *graph, int stage);

/* Layers. Parameters take torch.nn's names ("NAME.weight", "NAME.bias", …), shapes, defaults and initial
   distributions. A zero field means the default that is given behind it. */
typedef struct {
    const char *name;
    int64_t out_channels;
    int64_t kernel; /* square; or kernel_hw */
    int64_t kernel_hw[2];
    int64_t stride;   /* 1 */
    int64_t padding;  /* 0 */
    int64_t dilation; /* 1 */
    int64_t groups;   /* 1 */
    bool no_bias;     /* false: a bias */
} cvy_conv2d_args;
CVY_API cvy_value cvy_conv2d(cvy_graph *graph, cvy_value x, const cvy_conv2d_args *args);

typedef struct {
    const char *name;
    int64_t out_features;
    bool no_bias;
} cvy_linear_args;
/* On the last dimension of x, whatever its rank. */
CVY_API cvy_value cvy_linear(cvy_graph *graph, cvy_value x, const cvy_linear_args *args);

typedef struct {
    const char *name;
    double eps;      /* 1e-5 */
    double momentum; /* 0.1 */
} cvy_batch_norm_args;
CVY_API cvy_value cvy_batch_norm(cvy_graph *graph, cvy_value x, const cvy_batch_norm_args *args);

typedef struct {
    const char *name;
    int64_t kernel;
    int64_t stride;  /* kernel */
    int64_t padding; /* 0 */
    bool ceil_mode;
    bool exclude_padding; /* avg_pool: false counts the padding, as torch does */
} cvy_pool_args;
CVY_API cvy_value cvy_max_pool(cvy_graph *graph, cvy_value x, const cvy_pool_args *args);
CVY_API cvy_value cvy_avg_pool(cvy_graph *graph, cvy_value x, const cvy_pool_args *args);
CVY_API cvy_value cvy_adaptive_avg_pool(cvy_graph *graph, cvy_value x, int64_t height, int64_t width);

CVY_API cvy_value cvy_relu(cvy_graph *graph, cvy_value x);
CVY_API cvy_value cvy_add(cvy_graph *graph, cvy_value a, cvy_value b);
CVY_API cvy_value cvy_flatten(cvy_graph *graph, cvy_value x); /* N, rest */
CVY_API cvy_value cvy_dropout(cvy_graph *graph, cvy_value x, double p);
CVY_API cvy_value cvy_softmax(cvy_graph *graph, cvy_value x); /* last dimension */
CVY_API cvy_value cvy_mean(cvy_graph *graph, cvy_value x);    /* over all but N: shape N */
/* The loss: sum over the images divided by the global batch, shape 1. */
CVY_API cvy_value cvy_batch_mean(cvy_graph *graph, cvy_value x);
CVY_API cvy_value cvy_cross_entropy(cvy_graph *graph, cvy_value logits, cvy_value labels,
                                    double label_smoothing);

/* Any operator by its name, with attributes as text: cvy_apply(g, "max_pool", "l.pool", &x, 1, "kernel=2x2"). */
CVY_API cvy_value cvy_apply(cvy_graph *graph, const char *op, const char *name, const cvy_value *inputs,
                            int n, const char *attributes);

/* A model of `convoy models` by its torchvision name: adds its layers and returns the logits. */
CVY_API cvy_value cvy_model(cvy_graph *graph, const char *name, cvy_value images, int64_t num_classes);

/* ---- data -------------------------------------------------------------------------------------- */

typedef struct cvy_dataset cvy_dataset;
typedef struct cvy_loader cvy_loader;

typedef enum { CVY_SPLIT_TRAIN, CVY_SPLIT_VAL } cvy_split;

/* Opens one split of a data spec: digits, tensors:FILE, synthetic:CxHxW,classes=K,images=N, folder:DIR. `log` may
   be NULL. Local. */
CVY_API cvy_status cvy_dataset_open(const char *spec, cvy_split split, const cvy_log_sink *log,
                                    cvy_dataset **out);
/* n image files without labels, in this order: what `convoy predict IMAGE…` reads. Local. */
CVY_API cvy_status cvy_dataset_open_files(const char *const *paths, int64_t n, cvy_dataset **out);
CVY_API void cvy_dataset_free(cvy_dataset *dataset);
CVY_API int64_t cvy_dataset_size(const cvy_dataset *dataset);
CVY_API int64_t cvy_dataset_classes(const cvy_dataset *dataset);
CVY_API const char *cvy_dataset_class_name(const cvy_dataset *dataset, int64_t k);
/* Natural size of an image; 0 for height and width when the images' sizes vary. */
CVY_API void cvy_dataset_image_size(const cvy_dataset *dataset, int64_t *channels, int64_t *height,
                                    int64_t *width);

typedef enum { CVY_NCHW, CVY_NHWC } cvy_image_order;

/* What a loader yields: plain images and labels of one global batch. Owned by the loader, valid until the
   next call of cvy_loader_next. */
typedef struct cvy_batch {
    int64_t n, channels, height, width;
    cvy_dtype dtype; /* CVY_U8 (0 to 255) or CVY_F32 */
    cvy_image_order order;
    const void *images;
    const int64_t *labels;  /* n, or NULL */
    const int64_t *indices; /* n: position of each image in its data set */
    float mean[4], std[4];  /* the device computes (x / 255 (u8 only) - mean) / std per channel */
} cvy_batch;

typedef struct {
    int64_t batch_size; /* global */
    int workers;        /* decoding threads; 0: in the calling thread */
    uint64_t seed;
    bool shuffle;
    bool augment;       /* training transforms; false: evaluation's */
    const char *preset; /* "none", "cifar"; NULL: what suits the data */
    int64_t resize;     /* shorter side (u8 images); 0: none, or the crop's longer side where sizes vary */
    int64_t crop[2]; /* height, width of what comes out, from the centre; 0: all (needed where sizes vary) */
    int64_t pad;     /* training crops at random after this zero padding; -1: the preset's */
    int flip;        /* training mirrors with probability 1/2: 1, 0, or -1: the preset's */
    bool has_mean_std; /* false: what suits the data, else mean 0 and std 1 */
    float mean[4], std[4];
} cvy_loader_options;
/* The options' defaults. */
CVY_API void cvy_loader_defaults(cvy_loader_options *options);
/* `dataset` must outlive the loader; one thread calls the loader. CVY_ERR_USAGE: an option does not fit the data,
   or a training batch is larger than the set. Local. */
CVY_API cvy_status cvy_loader_new(const cvy_dataset *dataset, const cvy_loader_options *options,
                                  cvy_loader **out);
CVY_API void cvy_loader_free(cvy_loader *loader);
/* Image shape of every batch. */
CVY_API void cvy_loader_shape(const cvy_loader *loader, int64_t *channels, int64_t *height, int64_t *width);
/* Starts epoch e (0, 1, …), also in the middle of another: the order is a function of (seed, e) alone. */
CVY_API cvy_status cvy_loader_start(cvy_loader *loader, int64_t epoch);
/* CVY_OK and a batch, or CVY_END. The last batch of an epoch may be smaller. CVY_ERR_DATA names the file or the
   sample that is wrong, the first of the batch whatever the workers. */
CVY_API cvy_status cvy_loader_next(cvy_loader *loader, cvy_batch *out);

/* ---- plan and session -------------------------------------------------------------------------- */

typedef struct cvy_plan cvy_plan;
typedef struct cvy_session cvy_session;

typedef struct {
    const char *devices; /* "cpu:0", "cpu:0-3", "cpu:0,cpu:1", "auto"; NULL: one with all permitted cores */
    const char
        *strategy;    /* "single", "ddp", "mp", "pipeline", "hybrid"; NULL: single on one device, else ddp */
    const char *mesh; /* hybrid: "data=2,pipe=2"; NULL elsewhere */
    const char *schedule;              /* of pipelines: "gpipe", "1f1b"; NULL: 1f1b */
    const char *backend;               /* "cpu", "reference"; NULL: what the devices say */
    int64_t batch_size;                /* global; every later batch is at most this */
    int64_t shards;                    /* S; 0: the number of replicas, in pipelines 4 for each device */
    int threads_per_device;            /* T; 0: the device's cores */
    const char *conv_algo;             /* "auto", "direct", "winograd"; NULL: auto */
    double bucket_mb, first_bucket_mb; /* 0: 25 and 1 */
    const char *optimizer; /* "sgd", "adamw", any optimiser of `convoy train --help`; NULL: inference only */
    const char *optimizer_attributes; /* as text: "momentum=0.9 weight_decay=5e-4"; NULL: its defaults */
    uint64_t seed;                    /* of initial weights and dropout */
    double timeout_s;                 /* deadline of each wait between devices; 0: 60 */
    bool timeline;                    /* record what every instruction took */
    cvy_log_sink log;
} cvy_plan_options;

/* Binds graph, devices and strategy: fusion, differentiation, layouts, programs, memory. The graph is copied.
   Local now; Collective once several processes take part. */
CVY_API cvy_status cvy_plan_new(const cvy_graph *graph, const cvy_plan_options *options, cvy_plan **out);
CVY_API void cvy_plan_free(cvy_plan *plan);
/* The text of `convoy explain`: pass is "build", "fuse", "autodiff", "choose", "program" or NULL for a summary.
   The caller frees *out. */
CVY_API cvy_status cvy_plan_explain(const cvy_plan *plan, const char *pass, char **out);

/* Opens the devices, allocates, initialises the weights from the seed. `plan` must outlive it. Collective. */
CVY_API cvy_status cvy_session_new(cvy_plan *plan, cvy_session **out);
CVY_API void cvy_session_free(cvy_session *session);

/* One step of training, in one call or in three. The learning rate is that of this update. Collective. */
CVY_API void cvy_session_set_lr(cvy_session *session, double lr);
CVY_API cvy_status cvy_step(cvy_session *session, const cvy_batch *batch);
CVY_API cvy_status cvy_forward(cvy_session *session, const cvy_batch *batch);
CVY_API cvy_status cvy_backward(cvy_session *session);
CVY_API cvy_status cvy_update(cvy_session *session);

/* What the newest step gave: loss (mean over the images), images right by top-1 and top-5. */
typedef struct {
    double loss;
    int64_t n, top1, top5;
} cvy_metrics;
CVY_API void cvy_session_metrics(const cvy_session *session, cvy_metrics *out);

/* Evaluation mode: losses[n] (may be NULL), ranks[n] = how many classes scored above the label (may be NULL),
   logits n x classes (may be NULL), in the batch's order. Labels may be NULL when losses and ranks are.
   Collective. */
CVY_API cvy_status cvy_evaluate(cvy_session *session, const cvy_batch *batch, float *losses, int32_t *ranks,
                                float *logits);

/* Weights as safetensors with torchvision's names and shapes. Loading names every missing, unknown or
   misshapen tensor. Saving is done by rank 0 alone. Collective. */
CVY_API cvy_status cvy_load_weights(cvy_session *session, const char *path);
CVY_API cvy_status cvy_save_weights(cvy_session *session, const char *path);
/* xxh3 (64 bits) over names, shapes and values of all parameters and buffers, in name order. Collective. */
CVY_API cvy_status cvy_weights_hash(cvy_session *session, uint64_t *out);

CVY_API const char *cvy_version(void);

#ifdef __cplusplus
}
#endif
#endif
