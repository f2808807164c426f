/* The cutter: puts nodes of a chosen graph into the segments of a program, and gives every operand its place. */
#ifndef CVY_ENGINE_CUTTER_H
#define CVY_ENGINE_CUTTER_H

#include "engine/plan.h"

struct cvy_cutter {
    struct cvy_worker *w;
    const struct cvy_graph *g; /* chosen, of one shard size */
    struct cvy_slot_plan slot;
    bool *used;
    uint64_t *readers;                 /* per value: the stages whose passes read it */
    int32_t first_bucket, last_bucket; /* of this stage; training only */
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

#endif
