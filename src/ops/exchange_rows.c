/* exchange_rows: each shard gives a row, and every shard gets the rows of all. The engine runs it between two parts
   of a pass; the reference is what shard 0 has when the others are empty. */
#include "ops/batch_norm.h"
#include "ops/infer.h"

#include <string.h>

static const struct cvy_attr attr_table[] = {
    {"shards", CVY_ATTR_INT, offsetof(struct cvy_exchange_rows_attrs, shards), 1, 1, 1 << 20, "S: rows"},
};

static void reference(const struct cvy_reference *call) {
    memset(call->out[0], 0, (size_t)cvy_shape_count(&call->out_desc[0].shape) * sizeof(double));
    memcpy(call->out[0], call->in[0], (size_t)cvy_shape_count(&call->in_desc[0].shape) * sizeof(double));
}

static cvy_status infer(struct cvy_infer *call) {
    const struct cvy_exchange_rows_attrs *a = call->attrs;
    CVY_TRY(cvy_infer_rank(call, 0, 1));
    call->out[0] = cvy_desc_make(CVY_F32, CVY_SHAPE(a->shards, call->in[0].shape.dim[0]));
    return CVY_OK;
}

static const struct cvy_case cases[] = {{"", "f32[16]", 0, NULL}, {"shards=3", "f32[32]", 0, NULL}};

const struct cvy_op cvy_op_exchange_rows = {
    .name = "exchange_rows",
    .help = "rows = the rows of all shards, the same on every device",
    .attrs_size = sizeof(struct cvy_exchange_rows_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"row"},
    .out_names = (const char *const[]){"rows"},
    .flags = CVY_OP_COLLECTIVE,
    .infer = infer,
    .reference = reference,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
