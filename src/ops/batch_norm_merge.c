/* batch_norm_merge: the statistics of the whole batch out of the rows of all shards (see batch_norm.h), merged in the
   tree over shards by Chan's formula. `stats` is as batch_norm's, with this shard's images as weight, so that the sum
   over shards gives the batch's mean and unbiased variance. */
#include "ops/batch_norm.h"
#include "ops/cases.h"
#include "ops/infer.h"

#include <string.h>

typedef struct cvy_batch_norm_merge_attrs merge_attrs;

static const struct cvy_attr attr_table[] = {
    {"channels", CVY_ATTR_INT, offsetof(merge_attrs, channels), 1, 1, 1 << 24,
     "C: the row has 2C + 2 values"},
};

enum { ROWS, ROW };

struct moments { /* of one channel */
    double m, mean, m2;
};

/* Chan, Golub, LeVeque 1979: with d = mean_b - mean_a,
   mean = mean_a + d m_b / m, M2 = M2_a + M2_b + d^2 m_a m_b / m. An empty side changes nothing. */
static struct moments join(struct moments a, struct moments b) {
    double m = a.m + b.m, d = b.mean - a.mean;
    if (b.m == 0)
        return a;
    return (struct moments){m, a.mean + d * b.m / m, a.m2 + b.m2 + d * d * a.m * b.m / m};
}

/* The node of `size` rows, a power of two, from `first` on. */
static struct moments merge(const struct cvy_reference *call, int64_t c, int64_t first, int64_t size) {
    int64_t n = call->in_desc[ROWS].shape.dim[0], width = call->in_desc[ROWS].shape.dim[1];
    int64_t channels = ((const merge_attrs *)call->attrs)->channels;
    const double *row = call->in[ROWS] + first * width;
    if (size == 1)
        return (struct moments){row[2 * channels], row[c], row[channels + c]};
    struct moments left = merge(call, c, first, size / 2);
    return first + size / 2 < n ? join(left, merge(call, c, first + size / 2, size / 2)) : left;
}

static void reference(const struct cvy_reference *call) {
    int64_t channels = ((const merge_attrs *)call->attrs)->channels, size = 1;
    double images = call->in[ROW][2 * channels + 1], *stats = call->out[CVY_BATCH_NORM_MERGE_STATS];
    while (size < call->in_desc[ROWS].shape.dim[0])
        size *= 2;
    memset(stats, 0, (size_t)(2 * channels + 1) * sizeof *stats);
    for (int64_t c = 0; c < channels; c++) {
        struct moments all = merge(call, c, 0, size);
        call->out[CVY_BATCH_NORM_MERGE_MEAN][c] = all.mean;
        call->out[CVY_BATCH_NORM_MERGE_VAR][c] = all.m > 0 ? all.m2 / all.m : 0;
        if (all.m > 1) {
            stats[c] = images * all.mean;
            stats[channels + c] = images * all.m2 / (all.m - 1);
            stats[2 * channels] = images;
        }
    }
}

static cvy_status infer(struct cvy_infer *call) {
    int64_t channels = ((const merge_attrs *)call->attrs)->channels, width = cvy_batch_norm_row(channels);
    CVY_TRY(cvy_infer_rank(call, ROWS, 2));
    CVY_TRY(cvy_infer_float(call, ROWS, &CVY_SHAPE(call->in[ROWS].shape.dim[0], width)));
    CVY_TRY(cvy_infer_float(call, ROW, &CVY_SHAPE(width)));
    call->out[CVY_BATCH_NORM_MERGE_MEAN] = cvy_desc_make(CVY_F32, CVY_SHAPE(channels));
    call->out[CVY_BATCH_NORM_MERGE_VAR] = cvy_desc_make(CVY_F32, CVY_SHAPE(channels));
    call->out[CVY_BATCH_NORM_MERGE_STATS] = cvy_desc_make(CVY_F32, CVY_SHAPE(2 * channels + 1));
    return CVY_OK;
}

static void cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, 5 * (double)cvy_shape_count(&call->in[ROWS].shape), out);
}

/* Counts and M2 are positive, wherever in the row they lie. */
static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    cvy_fill_uniform(i, desc, seed, 0.5, 8, values);
}

static const struct cvy_case cases[] = {
    {"channels=7", "f32[1,16] f32[16]", 0, fill},     {"channels=3", "f32[5,16] f32[16]", 0, fill},
    {"channels=17", "f32[8,48] f32[48]", 0, fill},    {"channels=64", "f32[3,144] f32[144]", 0, fill},
    {"channels=64", "f32[64,144] f32[144]", 0, fill},
};

const struct cvy_op cvy_op_batch_norm_merge = {
    .name = "batch_norm_merge",
    .help = "mean, biased var and stats over all rows of batch_norm_moments, by Chan's formula in the tree",
    .attrs_size = sizeof(merge_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 3,
    .in_names = (const char *const[]){"rows", "row"},
    .out_names = (const char *const[]){"mean", "var", "stats"},
    .infer = infer,
    .reference = reference,
    .cost = cost,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
