/* all_reduce: the sum over all shards, on every device. The transport runs it, adding in the tree over shards;
   the reference is what one shard alone gives. */
#include "ops/infer.h"

#include <string.h>

static void reference(const struct cvy_reference *call) {
    memcpy(call->out[0], call->in[0], (size_t)cvy_shape_count(&call->in_desc[0].shape) * sizeof(double));
}

static const struct cvy_case cases[] = {{"", "f32[1]", 0, NULL}, {"", "f32[3,17]", 0, NULL}};

const struct cvy_op cvy_op_all_reduce = {
    .name = "all_reduce",
    .help = "y = the sum of x over all shards, the same bits on every device",
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"x"},
    .out_names = (const char *const[]){"y"},
    .flags = CVY_OP_COLLECTIVE,
    .aliases = (const struct cvy_alias[]){{0, 0}},
    .n_aliases = 1,
    .infer = cvy_infer_unary,
    .reference = reference,
    .cost = cvy_cost_elementwise,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
