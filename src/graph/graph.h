/* The SSA graph: operators over the tensors of one shard. Nodes are in topological order always (a node's
   inputs are made before it); values and nodes are named by index and never move within a graph. Passes
   append to a graph or build a new one; they never delete. */
#ifndef CVY_GRAPH_GRAPH_H
#define CVY_GRAPH_GRAPH_H

#include "base/mem.h"
#include "base/vec.h"
#include "graph/names.h"
#include "graph/op.h"

enum cvy_value_kind {
    CVY_VALUE_INPUT,  /* set by the host or the loader before each shard: images, labels, divisor, rng */
    CVY_VALUE_PARAM,  /* trained; lives in the parameter store */
    CVY_VALUE_BUFFER, /* stored and saved, not differentiated: running statistics */
    CVY_VALUE_STATE,  /* stored, belongs to the optimiser: momentum; zero at the start */
    CVY_VALUE_HYPER,  /* small host-set numbers of an update: f32[2] {learning rate, update number from 1} */
    CVY_VALUE_RESULT, /* made by a node */
};

enum cvy_init_kind {
    CVY_INIT_ZERO,
    CVY_INIT_ONE,
    CVY_INIT_UNIFORM,
    CVY_INIT_NORMAL,
    CVY_INIT_CONSTANT,
};
enum { CVY_N_INITS = CVY_INIT_CONSTANT + 1 };
struct cvy_init {
    enum cvy_init_kind kind;
    double scale; /* UNIFORM: values in (-scale, scale); NORMAL: standard deviation; CONSTANT: the value */
};

/* Do distributions of this kind have a scale? */
static inline bool cvy_init_has_scale(enum cvy_init_kind kind) { return kind >= CVY_INIT_UNIFORM; }

struct cvy_layout; /* opaque: made and understood by one backend; NULL = plain row-major */

struct cvy_value_info {
    const char *
        name; /* unique in the graph; no blanks, none of @ , ; = ( ) [ ], and not "-": the text needs those */
    struct cvy_desc desc;
    enum cvy_value_kind kind;
    int32_t node;   /* the producer, or -1 */
    int32_t output; /* which of its outputs */
    struct cvy_init init;
    const struct cvy_layout *layout; /* set by the choose pass; owned by the backend's device */
    bool is_private;                 /* see cvy_op.private_out */
    bool is_frozen;                  /* PARAM: gets no gradient */
    bool is_auxiliary;               /* PARAM, BUFFER: of an auxiliary head; a file of weights may lack it */
    bool
        has_batch; /* INPUT: its first dimension is the batch. Said once, where the input is made, never guessed
                         from a size: "divisor" and "rng" have none */
};

enum cvy_phase {
    CVY_PHASE_FORWARD,
    CVY_PHASE_BACKWARD,
    CVY_PHASE_UPDATE, /* once per step, after the reduction. The batch-norm layer adds one to the built graph:
                          batch_norm_update(running_mean, running_var, num_batches_tracked, stats); its last
                          input, made in FORWARD, is then a statistic that is summed over the shards */
    CVY_PHASE_REFRESH, /* re-packs a changed weight: right after its update, and after loading */
};

struct cvy_node {
    const struct cvy_op *op;
    const char *name; /* the layer: "layer1.0.conv1"; gradients add "'" */
    void *attrs;      /* op->attrs_size bytes, owned by the graph's pool */
    int n_in, n_out;
    cvy_value *in, *out; /* CVY_NONE for an absent optional input; out[] are consecutive values */
    enum cvy_phase phase;
    int32_t stage;     /* from cvy_stage(); -1: not said */
    int32_t bucket;    /* UPDATE and REFRESH nodes: which bucket they wait for; -1 otherwise */
    int32_t algorithm; /* set by the choose pass, meaning private to the backend's kernel; 0: default */
    uint32_t id;       /* operator id: position in the built graph; keys random numbers, survives passes */
};

/* What is summed over shards: gradients of parameters, batch statistics, loss and hits. */
enum cvy_reduce_kind { CVY_REDUCE_GRADIENT, CVY_REDUCE_STATISTIC, CVY_REDUCE_LOSS, CVY_REDUCE_HITS };
struct cvy_reducible {
    cvy_value value;  /* made by a FORWARD or BACKWARD node; f32 */
    cvy_value target; /* the parameter, or the first buffer; CVY_NONE for loss and hits */
    enum cvy_reduce_kind kind;
    int32_t bucket; /* set by the bucket pass */
};

struct cvy_named_output {
    const char *name;
    cvy_value value;
};

/* Logits that the loss looks at, too, and evaluation does not. */
struct cvy_auxiliary {
    cvy_value logits;
    double weight; /* of their loss; the usual one has 1 */
};

struct cvy_graph {
    CVY_VEC(struct cvy_value_info) values;
    CVY_VEC(struct cvy_node) nodes;
    CVY_VEC(struct cvy_reducible) reducibles; /* filled by autodiff, in the order the values are made */
    CVY_VEC(struct cvy_named_output) outputs;
    CVY_VEC(struct cvy_auxiliary) auxiliaries; /* for the builder: those whose loss was not added yet */
    int32_t n_buckets;
    struct cvy_pool pool;
    struct cvy_names names; /* of values */
    int32_t stage;          /* current, for the builder; -1: none said */
    uint32_t next_id;       /* from 1 */
    int64_t batch;          /* N of the shard that the shapes stand for */
    struct cvy_error error; /* the builder's first */
};

/* What the builder starts with instead of the real N, so that shapes can be inferred. Not 1, lest broadcasting
   or a rule for single images be taken for the general case. */
enum { CVY_BUILD_BATCH = 2 };

/* An empty graph, and its end, are cvy_graph_new and cvy_graph_free of convoy.h. */

/* Values. `name` is copied. Pointers to values and nodes hold until the next one is added. Local, as all of
   this file. */
cvy_status cvy_graph_add_value(struct cvy_graph *g, const char *name, const struct cvy_desc *desc,
                               enum cvy_value_kind kind, cvy_value *out);
struct cvy_value_info *cvy_graph_value(const struct cvy_graph *g, cvy_value v);
/* The input of that name, made on demand: "images" and "labels", which have the batch as first dimension;
   "divisor" f32[1] (images in the global batch) and "rng" i64[3] (seed, step, first image of the shard), which
   have not. CVY_ERR_USAGE when the name stands for something else. */
cvy_status cvy_graph_host_input(struct cvy_graph *g, const char *name, const struct cvy_desc *desc,
                                bool has_batch, cvy_value *out);
cvy_value cvy_graph_find(const struct cvy_graph *g, const char *name);   /* CVY_NONE when absent */
cvy_value cvy_graph_output(const struct cvy_graph *g, const char *name); /* by output name */
cvy_status cvy_graph_set_output(struct cvy_graph *g, const char *name, cvy_value v);

/* Adds a node: copies attrs (NULL: defaults), infers shapes, makes the output values, named
   "NAME.OUTNAME" (just "NAME" when the operator has one output); `name` gets "#2", "#3" … when taken.
   For CVY_OP_UPDATE outputs, the values are named "IN+" and share the storage of the aliased input.
   Optional inputs may be left out at the end: the node always has all n_in, CVY_NONE where absent. A variadic
   operator gets n_lead_in + k * n_in inputs, of which none is left out, and makes k * n_out outputs; `infer` is
   asked once per group, with the lead and that group.
   out receives n_out values (may be NULL). */
struct cvy_node_spec {
    const struct cvy_op *op;
    const char *name; /* NULL: the operator's */
    const void *attrs;
    const cvy_value *in;
    int n_in;
    enum cvy_phase phase;
    int32_t stage;
    uint32_t id; /* 0: a fresh one */
};
cvy_status cvy_graph_add_node(struct cvy_graph *g, const struct cvy_node_spec *given, cvy_value *out);

/* Infers a node's outputs again: out receives node->n_out descriptions. */
cvy_status cvy_graph_infer(const struct cvy_graph *g, const struct cvy_node *node, struct cvy_desc *out);

/* The call that a node of g stands for, its outputs described; `in` has room for node->n_in, and is what call->in
   points to. For nodes with at most CVY_MAX_OUT outputs, as all are but updates. */
void cvy_graph_call(const struct cvy_graph *g, const struct cvy_node *node, struct cvy_desc *in,
                    struct cvy_infer *call);

/* For gradients: a BACKWARD node of the same layer, stage and id as `of`, called "NAME'" . */
cvy_status cvy_graph_add_grad(struct cvy_graph *g, const struct cvy_node *of, const char *op,
                              const void *attrs, const cvy_value *in, int n_in, cvy_value *out);

/* Gives `to` the named outputs and the reducibles of g, whose values are map[] there. */
cvy_status cvy_graph_copy_tables(struct cvy_graph *to, const struct cvy_graph *g, const cvy_value *map);

/* A copy of g for another shard size: inputs with has_batch get the new one as first dimension, everything else
   is inferred again. Value and node indices are the same. Layouts stay on stored values only; those of inputs
   and results may depend on the shape, and are chosen again. */
cvy_status cvy_graph_rebatch(const struct cvy_graph *g, int64_t batch, struct cvy_graph **out);

/* Starts a copy: same values that are not RESULTs, same counters; outputs and reducibles are the pass's to set.
   map[v] gives the new index (CVY_NONE for results); the caller frees map. */
cvy_status cvy_graph_copy_roots(const struct cvy_graph *g, struct cvy_graph **out, cvy_value **map);
/* Copies node n of g with mapped inputs; sets map for its outputs. Keeps layouts, bucket, algorithm, id. */
cvy_status cvy_graph_copy_node(struct cvy_graph *to, const struct cvy_graph *g, const struct cvy_node *n,
                               cvy_value *map);

/* Every invariant above; names the first broken one. */
cvy_status cvy_graph_verify(const struct cvy_graph *g);

/* Text form, one line per value root or node, in the order of values:
     graph batch 2 next 3
     input images f32[2,3,32,32] batch
     param conv1.weight f32[6,3,5,5] uniform(0.2)
     conv1 f32[2,6,28,28] = conv2d(images, conv1.weight, -) kernel=5x5  ; stage 0, id 1
     pool.y f32[2,6,14,14], pool.index i32[2,6,14,14] = max_pool(conv1) kernel=2x2  ; id 2
     output logits = pool.y
   Behind ";" stand, where they are not the usual: layer (the name, where the outputs do not tell), stage, id,
   phase, bucket, algorithm. parse(print(g)) == g, but for layouts ("@NAME" behind a shape, printed when
   `layouts` is given and it is not plain), which parse reads over, and the builder's stage and error.
   A layout's name has no blanks and none of , ( ) ; */
typedef void (*cvy_layout_printer)(const struct cvy_layout *layout, struct cvy_text *out);
cvy_status cvy_graph_print(const struct cvy_graph *g, cvy_layout_printer layouts, struct cvy_text *out);
cvy_status cvy_graph_parse(const char *text, struct cvy_graph **out);

#endif
