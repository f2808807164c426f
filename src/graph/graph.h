/* The SSA graph: operators over the tensors of one shard. Nodes are in topological order always (a node's
   inputs are made before it); values and nodes are named by index and never move within a graph. Passes
   append to a graph or build a new one; they never delete. */
#ifndef CVY_GRAPH_GRAPH_H
#define CVY_GRAPH_GRAPH_H

#include "base/mem.h"
#include "base/vec.h"
#include "graph/op.h"

enum cvy_value_kind {
    CVY_VALUE_INPUT,  /* set by the host or the loader before each shard: images, labels, divisor, rng */
    CVY_VALUE_PARAM,  /* trained; lives in the parameter store */
    CVY_VALUE_BUFFER, /* stored and saved, not differentiated: running statistics */
    CVY_VALUE_STATE,  /* stored, belongs to the optimiser: momentum; zero at the start */
    CVY_VALUE_HYPER,  /* small host-set numbers of an update: f32[2] {learning rate, update number from 1} */
    CVY_VALUE_RESULT, /* made by a node */
};

enum cvy_init_kind { CVY_INIT_ZERO, CVY_INIT_ONE, CVY_INIT_UNIFORM, CVY_INIT_NORMAL };
struct cvy_init {
    enum cvy_init_kind kind;
    double scale; /* UNIFORM: values in (-scale, scale); NORMAL: standard deviation */
};

struct cvy_layout; /* opaque: made and understood by one backend; NULL = plain row-major */

struct cvy_value_info {
    const char *name; /* unique in the graph */
    struct cvy_desc desc;
    enum cvy_value_kind kind;
    int32_t node;     /* the producer, or -1 */
    int32_t output;   /* which of its outputs */
    struct cvy_init init;
    const struct cvy_layout *layout; /* set by the choose pass; owned by the backend's device */
    bool is_private;  /* see cvy_op.private_out */
};

enum cvy_phase {
    CVY_PHASE_FORWARD,
    CVY_PHASE_BACKWARD,
    CVY_PHASE_UPDATE,  /* once per step, after the reduction */
    CVY_PHASE_REFRESH, /* re-packs a changed weight: right after its update, and after loading */
};

struct cvy_node {
    const struct cvy_op *op;
    const char *name; /* the layer: "layer1.0.conv1"; gradients add "'" */
    void *attrs;      /* op->attrs_size bytes, owned by the graph's pool */
    int n_in, n_out;
    cvy_value *in, *out; /* CVY_NONE for an absent optional input */
    enum cvy_phase phase;
    int32_t stage;    /* from cvy_stage(); -1: not said */
    int32_t bucket;   /* UPDATE and REFRESH nodes: which bucket they wait for; -1 otherwise */
    int32_t algorithm; /* set by the choose pass, meaning private to the backend's kernel; 0: default */
    uint32_t id;      /* operator id: position in the built graph; keys random numbers, survives passes */
};

/* What is summed over shards: gradients of parameters, batch statistics, loss and hits. */
enum cvy_reduce_kind { CVY_REDUCE_GRADIENT, CVY_REDUCE_STATISTIC, CVY_REDUCE_LOSS, CVY_REDUCE_HITS };
struct cvy_reducible {
    cvy_value value;   /* made by a FORWARD or BACKWARD node; f32 */
    cvy_value target;  /* the parameter, or the first buffer; CVY_NONE for loss and hits */
    enum cvy_reduce_kind kind;
    int32_t bucket;    /* set by the bucket pass */
};

struct cvy_named_output {
    const char *name;
    cvy_value value;
};

struct cvy_graph {
    CVY_VEC(struct cvy_value_info) values;
    CVY_VEC(struct cvy_node) nodes;
    CVY_VEC(struct cvy_reducible) reducibles; /* filled by autodiff, in the order the values are made */
    CVY_VEC(struct cvy_named_output) outputs;
    int32_t n_buckets;
    struct cvy_pool pool;
    int32_t stage;      /* current, for the builder */
    uint32_t next_id;
    int64_t batch;      /* N of the shard that the shapes stand for */
    struct cvy_error error; /* the builder's first */
};

/* Values. `name` is copied. Local, as all of this file. */
cvy_status cvy_graph_add_value(struct cvy_graph *g, const char *name, const struct cvy_desc *desc,
                               enum cvy_value_kind kind, cvy_value *out);
struct cvy_value_info *cvy_graph_value(const struct cvy_graph *g, cvy_value v);
cvy_value cvy_graph_find(const struct cvy_graph *g, const char *name);       /* CVY_NONE when absent */
cvy_value cvy_graph_output(const struct cvy_graph *g, const char *name);     /* by output name */
cvy_status cvy_graph_set_output(struct cvy_graph *g, const char *name, cvy_value v);

/* Adds a node: copies attrs (NULL: defaults), infers shapes, makes the output values, named
   "NAME.OUTNAME" (just "NAME" when the operator has one output); `name` gets "#2", "#3" … when taken.
   For CVY_OP_UPDATE outputs, the values are named "IN+" and share the storage of the aliased input.
   out receives n_out values (may be NULL). */
struct cvy_node_spec {
    const struct cvy_op *op;
    const char *name;
    const void *attrs;
    const cvy_value *in;
    int n_in;
    enum cvy_phase phase;
    int32_t stage;
    uint32_t id; /* 0: a fresh one */
};
cvy_status cvy_graph_add_node(struct cvy_graph *g, const struct cvy_node_spec *spec, cvy_value *out);

/* For gradients: a BACKWARD node of the same layer, stage and id as `of`, called "NAME'" . */
cvy_status cvy_graph_add_grad(struct cvy_graph *g, const struct cvy_node *of, const char *op, const void *attrs,
                              const cvy_value *in, int n_in, cvy_value *out);

/* A copy of g for another shard size: inputs of the old batch size get the new one as first dimension,
   everything else is inferred again. Value and node indices are the same. */
cvy_status cvy_graph_rebatch(const struct cvy_graph *g, int64_t batch, struct cvy_graph **out);

/* Starts a copy: same values that are not RESULTs, same outputs table later set by the pass. map[v] gives the
   new index (CVY_NONE for results); the caller frees map. */
cvy_status cvy_graph_copy_roots(const struct cvy_graph *g, struct cvy_graph **out, cvy_value **map);
/* Copies node n of g with mapped inputs; sets map for its outputs. */
cvy_status cvy_graph_copy_node(struct cvy_graph *to, const struct cvy_graph *g, const struct cvy_node *n,
                               cvy_value *map);

/* Every invariant above; names the first broken one. */
cvy_status cvy_graph_verify(const struct cvy_graph *g);

/* Text form, one line per value root or node; parse(print(g)) == g (layouts by name only when given). */
typedef void (*cvy_layout_printer)(const struct cvy_layout *layout, struct cvy_text *out);
cvy_status cvy_graph_print(const struct cvy_graph *g, cvy_layout_printer layouts, struct cvy_text *out);
cvy_status cvy_graph_parse(const char *text, struct cvy_graph **out);

#endif
