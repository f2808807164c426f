/* The passes: graph to graph, each in the file of its name. Their order:
     built graph -> mode -> fuse -> (sync_bn) -> (freeze) -> stage -> (cast) -> autodiff -> (recompute) -> update ->
     choose -> (strategy) -> memory
   All are Local and deterministic: their result is a function of their arguments alone. */
#ifndef CVY_PASS_PASS_H
#define CVY_PASS_PASS_H

#include "graph/graph.h"
#include "rt/backend.h"

/* mode: keeps what the named outputs need, and sets every attribute called "training". Outputs that the
   graph lacks are left out. UPDATE nodes stay when is_training. */
cvy_status cvy_pass_mode(const struct cvy_graph *g, bool is_training, const char *const *outputs,
                         int n_outputs, struct cvy_graph **out);

/* fuse: batch_norm + relu, batch_norm + add + relu become one batch_norm. */
cvy_status cvy_pass_fuse(const struct cvy_graph *g, struct cvy_graph **out);

/* sync_bn: every training batch_norm takes its statistics over all shards: the node becomes several, with an exchange
   of rows among them. After fuse, before autodiff. */
cvy_status cvy_pass_sync_bn(const struct cvy_graph *g, int64_t n_shards, struct cvy_graph **out);

/* freeze: marks the parameters whose names match one of the patterns, "conv1.*,bn1.*" (fnmatch): autodiff makes no
   gradient of them. CVY_ERR_USAGE: a pattern that fits none, or nothing is left to train. Before stage. */
cvy_status cvy_pass_freeze(struct cvy_graph *g, const char *patterns);

/* stage: gives every node its stage: all 0 for one stage, else what cvy_stage said, else balanced by what a layer's
   forward and backward nodes cost; under a limit of memory among the cuts whose stages are estimated to fit, or when
   none does, where least is missing. */
struct cvy_stage_options {
    const struct cvy_backend *backend; /* whose algorithms count; NULL: formulas alone */
    const char *conv_algo;
    size_t memory_limit;             /* bytes of a stage; 0: none, and the rest is not looked at */
    int32_t n_copies;                /* of a parameter: itself and the optimiser's states */
    const int32_t *n_slots, *n_sums; /* per stage: shards in flight, copies of the gradients */
};
cvy_status cvy_pass_stages(struct cvy_graph *g, int32_t n_stages, const struct cvy_stage_options *options);
/* The estimate that balancing goes by: the layer of a forward node, with what g has of its backward pass, in seconds
   of an imagined processor. */
double cvy_layer_time(const struct cvy_graph *g, const struct cvy_node *node,
                      const struct cvy_stage_options *options);
/* The stages of another graph of the same model: evaluation runs where training keeps the parameters. */
void cvy_pass_stages_like(struct cvy_graph *g, const struct cvy_graph *like);

/* cast: mixed precision: operators that can (CVY_OP_LOW, CVY_OP_FOLLOWS) compute in `low`, the rest in float32. After
   stage, before autodiff. */
cvy_status cvy_pass_cast(const struct cvy_graph *g, cvy_dtype low, struct cvy_graph **out);

/* autodiff: appends BACKWARD nodes for the gradient of output "loss", scaled by the input "loss_scale" on the way if
   the graph has it, and fills g->reducibles: loss, hits,
   statistics, and the gradient of each parameter that the loss depends on, in the order they are made. */
cvy_status cvy_pass_autodiff(struct cvy_graph *g);

/* recompute: the backward pass makes again what batch-norms gave, from their inputs, instead of keeping it: the same
   bits in less memory (but for the backend `reference`, whose statistics are rounded only where they are stored).
   After autodiff, before update. */
cvy_status cvy_pass_recompute(const struct cvy_graph *g, struct cvy_graph **out);

/* update: orders the reducibles by stage, last first, cuts them into buckets of one stage each, and appends, for each
   bucket, the optimiser over its parameters, a node for each group. */
/* Groups of parameters that may have a weight decay of their own, as torchvision forms them: "X.bias" of any layer,
   then what else belongs to a normalisation (CVY_OP_NORM), then the rest. */
enum cvy_decay { CVY_DECAY_OTHER, CVY_DECAY_NORM, CVY_DECAY_BIAS, CVY_N_DECAYS };
struct cvy_update_options {
    const struct cvy_op *optimizer;
    const void *attrs[CVY_N_DECAYS];         /* its attributes; NULL but for the rest: no group of its own */
    size_t first_bucket_bytes, bucket_bytes; /* borders; one tensor is never cut */
};
cvy_status cvy_pass_update(struct cvy_graph *g, const struct cvy_update_options *options);

/* The stage of each of g's buckets: out has room for g->n_buckets. */
void cvy_bucket_stages(const struct cvy_graph *g, int32_t *out);

/* choose: asks the backend for each node's layouts and algorithm, and puts `reorder` nodes where two disagree.
   A stored value has one master layout, fixed by the training graph at the largest shard size (the layout of
   the parameter's gradient), and packed copies in other layouts, remade by REFRESH nodes. */
struct cvy_masters { /* name -> layout of stored values that are not plain */
    CVY_VEC(struct cvy_master {
        const char *name; /* owned by the graph that fixed it */
        const struct cvy_layout *layout;
    })
    items;
};
const struct cvy_layout *cvy_masters_find(const struct cvy_masters *masters, const char *name);
void cvy_masters_free(struct cvy_masters *masters);

struct cvy_choose_options {
    struct cvy_device *device;
    int64_t rule_batch; /* largest shard size of the run */
    bool is_training;
};
/* Finds the masters (training graph only; for inference they stay empty = plain). */
cvy_status cvy_pass_masters(const struct cvy_graph *g, const struct cvy_choose_options *options,
                            struct cvy_masters *masters);
cvy_status cvy_pass_choose(const struct cvy_graph *g, const struct cvy_choose_options *options,
                           const struct cvy_masters *masters, struct cvy_graph **out);

/* memory: offsets of the values that one stage's nodes make or read within a shard's slot, by liveness over FORWARD
   then BACKWARD nodes, reusing an input's place where operator and kernel allow. Stored values
   and reducibles get no slot. */
struct cvy_slot_plan {
    size_t *offset;  /* per value; SIZE_MAX: not in the slot */
    size_t *n_bytes; /* per value, of its layout */
    cvy_value
        *storage; /* per value: the value whose bytes it shares (itself mostly; views and in-place differ) */
    size_t slot_bytes;
    size_t n_values;
};
cvy_status cvy_pass_memory(const struct cvy_graph *g, const struct cvy_device *device, int32_t stage,
                           struct cvy_slot_plan *out);
void cvy_slot_plan_free(struct cvy_slot_plan *plan);

/* Shared: the backend call that stands for node n (layouts as the graph's values have them). The arrays in
   and out have room for n->n_in and n->n_out. `used`: whether value v is read by anybody (may be NULL). */
void cvy_call_of_node(const struct cvy_graph *g, const struct cvy_node *n, const bool *used,
                      struct cvy_operand_spec *in, struct cvy_operand_spec *out, struct cvy_call *call);
/* Gives `node`, a copy that is not in a graph yet, attributes of its own with the boolean `flag` set. Does nothing
   when the operator has no such attribute. */
cvy_status cvy_node_set_flag(struct cvy_pool *pool, struct cvy_node *node, const char *flag, bool value);
/* used[v]: v is read by a node, is an output or a reducible. The caller frees it. */
cvy_status cvy_graph_used(const struct cvy_graph *g, bool **out);

#endif
