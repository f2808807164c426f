/* The cutter: puts nodes of a chosen graph into the segments of a program, and gives every operand its place. */
#ifndef CVY_ENGINE_CUTTER_H
#define CVY_ENGINE_CUTTER_H

#include "engine/plan.h"

typedef CVY_VEC(struct cvy_part) cvy_parts;

struct cvy_cutter {
    struct cvy_worker *w;
    const struct cvy_graph *g; /* chosen, of one shard size */
    struct cvy_slot_plan slot;
    bool *used;
    uint64_t *readers;                 /* per value: the stages whose passes read it */
    int32_t first_bucket, last_bucket; /* of this stage; training only */
    cvy_parts parts[2];                /* of forward and backward passes */
    bool is_training;
    int64_t size;
    int32_t *operand; /* value -> index in the segment being filled; -1: not there yet */
    size_t segment;   /* index: the array moves */
};

/* Starts filling the segment (phase, part), a new one where there is none; forward and backward segments are of
   the cutter's shard size. */
cvy_status cvy_cutter_enter(struct cvy_cutter *cutter, enum cvy_phase phase, int32_t part);
/* Appends a node's operator, with its operands, to the segment. */
cvy_status cvy_cutter_add_op(struct cvy_cutter *cutter, const struct cvy_node *node);
/* Names value v as what the host reads or writes; CVY_NONE: nothing. `name` must outlive the program. */
cvy_status cvy_cutter_add_port(struct cvy_cutter *cutter, const char *name, cvy_value v);
/* Bytes of value v in its layout. */
size_t cvy_cutter_bytes(const struct cvy_cutter *cutter, cvy_value v);

/* ---- parts.c ---- */

/* The parts of both passes of a chosen graph; of the backward pass of one stage, which has these buckets, -1: none. A
   backward part's number is first_bucket + its place in the list. */
cvy_status cvy_cut_parts(const struct cvy_graph *g, int32_t first_bucket, int32_t last_bucket,
                         cvy_parts parts[2]);
void cvy_parts_free(cvy_parts parts[2]);
/* Do shards exchange rows? */
bool cvy_has_exchanges(const struct cvy_graph *g);
/* Memory for the rows of all shards. */
size_t cvy_rows_bytes(const struct cvy_graph *g);
/* Where v lies when it is a row, or the rows, of an exchange. False: it is neither. */
bool cvy_rows_place(const struct cvy_graph *g, cvy_value v, struct cvy_place *out);

#endif
