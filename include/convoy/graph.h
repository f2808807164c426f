/* Graphs: what is computed for a batch of images. See convoy.h. */
#ifndef CONVOY_GRAPH_H
#define CONVOY_GRAPH_H

#include <convoy/status.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    double eps; /* 1e-5 */
} cvy_layer_norm_args;
/* N,C,… to the same shape: over the channels of each pixel, with a weight and a bias for each channel. Of N,C it is
   nn.LayerNorm, of N,C,H,W what torchvision calls LayerNorm2d. */
CVY_API cvy_value cvy_layer_norm(cvy_graph *graph, cvy_value x, const cvy_layer_norm_args *args);

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

#ifdef __cplusplus
}
#endif
#endif
