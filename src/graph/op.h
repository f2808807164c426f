/* What an operator is: one `static const struct cvy_op` says everything about it, in one file of src/ops.
   Passes, help, serialisation, backends and tests read this struct and nothing else; there is no switch
   over operators anywhere. */
#ifndef CVY_GRAPH_OP_H
#define CVY_GRAPH_OP_H

#include "graph/shape.h"

struct cvy_graph;
struct cvy_node;

/* ---- attributes: a plain C struct per operator, described by a table --------------------------- */

enum cvy_attr_type { CVY_ATTR_INT, CVY_ATTR_PAIR, CVY_ATTR_FLOAT, CVY_ATTR_BOOL };
/* C types of the fields: int64_t, int64_t[2] (text "3x3"), double, bool. */

struct cvy_attr {
    const char *name;
    enum cvy_attr_type type;
    size_t offset;   /* in the operator's attribute struct */
    double initial;  /* the default, for a pair both */
    double min, max; /* inclusive */
    const char *help;
};

/* Sets every field to its default; `attrs` has op->attrs_size bytes. */
struct cvy_op;
void cvy_attrs_default(const struct cvy_op *op, void *attrs);
/* "kernel=3x3 stride=2x2": sets what is named, checks ranges, names the unknown one and the nearest. */
cvy_status cvy_attrs_parse(const struct cvy_op *op, const char *text, void *attrs);
/* Prints those that differ from the default, in table order, separated by spaces; full precision. */
void cvy_attrs_print(const struct cvy_op *op, const void *attrs, struct cvy_text *out);
/* Every field in its range, whoever set it. */
cvy_status cvy_attrs_check(const struct cvy_op *op, const void *attrs);
/* Field by field: the structs have padding, so memcmp would not do. */
bool cvy_attrs_equal(const struct cvy_op *op, const void *a, const void *b);
/* A number in the fewest digits that parse back to the same double. */
void cvy_f64_print(struct cvy_text *out, double value);

/* ---- calls ------------------------------------------------------------------------------------- */

enum { CVY_MAX_OUT = 8 };

struct cvy_infer { /* shape inference: inputs are given, outputs to be filled */
    const struct cvy_op *op;
    const void *attrs;
    int n_in, n_out;
    const struct cvy_desc *in; /* n_in; an absent optional input is CVY_DESC_ABSENT */
    struct cvy_desc out[CVY_MAX_OUT];
};

struct cvy_reference { /* the reference kernel's call: dense row-major arrays of doubles, never aliased */
    const void *attrs;
    int n_in, n_out;
    const struct cvy_desc *in_desc, *out_desc; /* integers come as exact doubles (all below 2^53) */
    const double *const *in;                   /* an absent optional input is NULL */
    double *const *out;
};

struct cvy_cost {
    double flops; /* multiply and add count 2 */
    double bytes; /* read + written, each tensor once */
};

/* ---- conformance cases: what `convoy check` and the tests run on every backend ------------------ */

struct cvy_case {
    const char *attrs;  /* as text */
    const char *inputs; /* "f32[2,3,8,8] f32[4,3,3,3] -": one per input, "-" = absent */
    double tolerance;   /* on ||a-b||/||b||, fp32 kernels against the reference; 0: the default 1e-5 */
    /* How inputs are drawn: NULL = normal(0,1) for floats, 0 for integers. Else fills input i. */
    void (*fill)(int i, const struct cvy_desc *desc, uint64_t seed, double *values);
};

/* ---- the operator ------------------------------------------------------------------------------ */

struct cvy_alias {
    int8_t out, in; /* output `out` may take (or must take) the memory of input `in`; they count as out_names
                       and in_names do, so in a variadic operator they mean the same ones of each group */
};

enum cvy_op_flags {
    CVY_OP_VARIADIC = 1,   /* inputs come in groups of n_in, after n_lead_in single ones; outputs likewise in
                               groups of n_out: optimisers over a bucket */
    CVY_OP_UPDATE = 2,     /* outputs MUST alias the inputs listed in `aliases` (new value of a stored one) */
    CVY_OP_OPTIMIZER = 4,  /* offered by --opt; see src/ops/sgd.c for the order of inputs */
    CVY_OP_COLLECTIVE = 8, /* run by the transport, not by a backend's kernel */
    CVY_OP_RANDOM = 16,    /* last input is the i64[3] tensor {seed, step, first image of the shard} */
    CVY_OP_VIEW = 32,      /* output 0 is input 0's bytes in plain layout (flatten): no kernel runs */
    CVY_OP_PRODUCTS = 64,  /* sums of products, which TF32 makes faster and less exact */
    CVY_OP_LOW = 128,      /* --amp: the inputs of narrow_in come in the low precision */
    CVY_OP_FOLLOWS = 256,  /* --amp: they do when all of them are there already, else in float32 */
    CVY_OP_PACKS = 512,    /* of a parameter, run once after its update and not for each shard */
    CVY_OP_NORM = 1024,    /* a normalisation: its parameters are those of --norm-weight-decay */
};

struct cvy_op {
    const char *name;
    const char *help; /* one line, with the formula */
    size_t attrs_size;
    const struct cvy_attr *attrs;
    int n_attrs;

    int n_lead_in;      /* only with CVY_OP_VARIADIC */
    int n_in, n_in_min; /* inputs n_in_min.. are optional */
    int n_out;
    const char *const *in_names;  /* n_lead_in + n_in */
    const char *const *out_names; /* n_out */
    uint32_t private_out; /* bit i: output i is for this operator's own gradient; a backend may give it any
                                  form (a mask, an index), tests do not compare it */
    uint32_t narrow_in;   /* bit i: input i may be of a 16-bit type while the others are float32 */
    uint32_t flags;
    const struct cvy_alias *aliases;
    int n_aliases;

    /* Fills out[].  CVY_ERR_USAGE names the operator, the shapes and what would fit. NULL only for variadic
       updates, whose outputs have the descriptions of the aliased inputs. */
    cvy_status (*infer)(struct cvy_infer *call);

    /* Emits nodes into g that compute gin[i] (preset to CVY_NONE) from gout[o] (CVY_NONE: that output's
       gradient is zero). `want` bit i: gradient of input i is needed; others may stay CVY_NONE.
       `node` is a copy outside g, so it holds while nodes are added.
       NULL: no input is differentiable (or gradients stop here). */
    cvy_status (*grad)(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin);

    /* The oracle: plain loops. Must write every element of every output, private ones too. */
    void (*reference)(const struct cvy_reference *call);

    void (*cost)(const struct cvy_infer *call,
                 struct cvy_cost *out); /* NULL: flops 0, bytes = all operands */

    /* What a user should know about this call, as the end of a line that begins with the layer's name; appends
       nothing when all is usual. NULL: never anything. */
    void (*remark)(const struct cvy_infer *call, struct cvy_text *out);

    const struct cvy_case *cases;
    int n_cases;
};

/* The table of src/ops/ops.def. */
const struct cvy_op *cvy_op_find(const char *name); /* NULL when there is none */
const struct cvy_op *const *cvy_op_table(size_t *n);

/* How many groups of inputs n_in inputs make: 1 unless variadic; -1 when the operator cannot take so many.
   Only a non-variadic operator may be given fewer than all: optional ones at the end. */
int cvy_op_groups(const struct cvy_op *op, int n_in);
/* Of input i, counted over all groups: whether it may be absent, and what it is called. */
bool cvy_op_is_optional(const struct cvy_op *op, int i);
const char *cvy_op_in_name(const struct cvy_op *op, int i);
/* The input (counted over all groups) whose memory output `out` may or must take; -1: none. */
int cvy_op_aliased_input(const struct cvy_op *op, int out);
/* Describes all outputs of a call with all its inputs (absent ones: CVY_DESC_ABSENT): `infer` once per group, with
   the lead and that group; without `infer`, as the aliased inputs. */
cvy_status cvy_op_infer(const struct cvy_op *op, const void *attrs, int n_in, const struct cvy_desc *in,
                        struct cvy_desc *out);

/* cost() or its default. */
void cvy_op_cost(const struct cvy_infer *call, struct cvy_cost *out);

#endif
