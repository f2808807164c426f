/* batch_norm_update: moves the running statistics, once per step, by the batch_norm's `stats` summed over the
   shards. Statistics that no shard had (one value a channel everywhere) leave everything as it was. */
#include "ops/batch_norm.h"
#include "ops/cases.h"
#include "ops/infer.h"

typedef struct cvy_batch_norm_attrs norm_attrs;

static const struct cvy_attr attr_table[] = {
    {"momentum", CVY_ATTR_FLOAT, offsetof(norm_attrs, momentum), 0.1, 0, 1,
     "weight of the step's statistics"},
};

enum { RUNNING_MEAN, RUNNING_VAR, NUM_BATCHES, STATS };

/* running = (1 - momentum) running + momentum (statistic of the step). */
static void reference(const struct cvy_reference *call) {
    const norm_attrs *a = call->attrs;
    int64_t channels = call->in_desc[0].shape.dim[0];
    const double *stats = call->in[STATS];
    double n = stats[2 * channels], momentum = n > 0 ? a->momentum : 0;
    for (int part = 0; part < 2; part++) { /* mean, variance */
        for (int64_t c = 0; c < channels; c++) {
            double statistic = n > 0 ? stats[part * channels + c] / n : 0;
            call->out[part][c] = (1 - momentum) * call->in[part][c] + momentum * statistic;
        }
    }
    call->out[NUM_BATCHES][0] = call->in[NUM_BATCHES][0] + (n > 0);
}

static cvy_status infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_rank(call, RUNNING_MEAN, 1));
    int64_t channels = call->in[RUNNING_MEAN].shape.dim[0];
    CVY_TRY(cvy_infer_float(call, RUNNING_VAR, &call->in[RUNNING_MEAN].shape));
    CVY_TRY(cvy_infer_typed(call, NUM_BATCHES, CVY_I64, &(struct cvy_shape){0}));
    CVY_TRY(cvy_infer_float(call, STATS, &CVY_SHAPE(2 * channels + 1)));
    for (int o = 0; o < 3; o++)
        call->out[o] = call->in[o];
    return CVY_OK;
}

static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    if (i == NUM_BATCHES)
        cvy_fill_below(i, desc, seed, 1000, values);
    else
        cvy_fill_uniform(i, desc, seed, 0.5, 2, values);
}

static void fill_none(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    fill(i, desc, seed, values);
    for (int64_t k = 0; i == STATS && k < cvy_shape_count(&desc->shape); k++)
        values[k] = 0;
}

static const struct cvy_case cases[] = {
    {"", "f32[1] f32[1] i64[] f32[3]", 0, fill},
    {"", "f32[17] f32[17] i64[] f32[35]", 0, fill},
    {"momentum=1", "f32[3] f32[3] i64[] f32[7]", 0, fill},
    {"", "f32[3] f32[3] i64[] f32[7]", 0, fill_none},
};

const struct cvy_op cvy_op_batch_norm_update = {
    .name = "batch_norm_update",
    .help = "running = (1 - momentum) running + momentum stats / stats[2C]; counts the batch",
    .attrs_size = sizeof(norm_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 4,
    .n_in_min = 4,
    .n_out = 3,
    .in_names = (const char *const[]){"running_mean", "running_var", "num_batches_tracked", "stats"},
    .out_names = (const char *const[]){"running_mean", "running_var", "num_batches_tracked"},
    .flags = CVY_OP_UPDATE,
    .aliases = (const struct cvy_alias[]){{RUNNING_MEAN, RUNNING_MEAN},
                                          {RUNNING_VAR, RUNNING_VAR},
                                          {NUM_BATCHES, NUM_BATCHES}},
    .n_aliases = 3,
    .infer = infer,
    .reference = reference,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
