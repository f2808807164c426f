/* accuracy: for each image, how many classes score above its label. Rank 0 is a top-1 hit, below 5 a top-5
   hit. Of equal scores the lower class counts as above. A label outside 0 … K - 1, and a row with a NaN, has a
   rank behind all classes, max(K, 5), so that a broken model never looks right. */
#include "ops/cases.h"
#include "ops/cross_entropy.h"
#include "ops/infer.h"

#include <math.h>

enum { LOGITS, LABELS };

static cvy_status infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_rank(call, LOGITS, 2));
    struct cvy_shape images = CVY_SHAPE(call->in[LOGITS].shape.dim[0]);
    CVY_TRY(cvy_infer_typed(call, LABELS, CVY_I64, &images));
    call->out[CVY_ACCURACY_RANKS] = cvy_desc_make(CVY_I32, images);
    call->out[CVY_ACCURACY_HITS] = cvy_desc_make(CVY_F32, CVY_SHAPE(2));
    return CVY_OK;
}

static int64_t rank_of(const double *scores, int64_t n, double label) {
    if (!(label >= 0 && label < (double)n))
        return CVY_ACCURACY_WRONG(n);
    int64_t rank = 0, own = (int64_t)label;
    for (int64_t k = 0; k < n; k++) {
        if (isnan(scores[k]))
            return CVY_ACCURACY_WRONG(n);
        rank += scores[k] > scores[own] || (scores[k] == scores[own] && k < own);
    }
    return rank;
}

static void reference(const struct cvy_reference *call) {
    int64_t images = call->in_desc[LOGITS].shape.dim[0], n_classes = call->in_desc[LOGITS].shape.dim[1];
    double *hits = call->out[CVY_ACCURACY_HITS];
    hits[0] = hits[1] = 0;
    for (int64_t n = 0; n < images; n++) {
        int64_t rank = rank_of(call->in[LOGITS] + n * n_classes, n_classes, call->in[LABELS][n]);
        call->out[CVY_ACCURACY_RANKS][n] = (double)rank;
        hits[0] += rank == 0;
        hits[1] += rank < 5;
    }
}

/* Labels below 3, which all cases have, and few distinct scores, so that some are equal. */
static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    cvy_fill_below(i, desc, seed, i == LABELS ? 3 : 8, values);
}

static const struct cvy_case cases[] = {
    {"", "f32[1,3] i64[1]", 0, fill},
    {"", "f32[17,10] i64[17]", 0, fill},
    {"", "f32[3,1000] i64[3]", 0, fill},
};

const struct cvy_op cvy_op_accuracy = {
    .name = "accuracy",
    .help = "ranks = classes that score above the label; hits = {ranks equal to 0, ranks below 5}",
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 2,
    .in_names = (const char *const[]){"logits", "labels"},
    .out_names = (const char *const[]){"ranks", "hits"},
    .infer = infer,
    .reference = reference,
    .cases = cases,
    .n_cases = CVY_N(cases),
};
