/* accuracy: classes that score above the label; of equal scores the lower class does. A wrong label, and a
   row with a NaN, is behind all of them. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/rows.h"
#include "ops/cross_entropy.h"

enum { LOGITS, LABELS };

CPU_INLINE int32_t rank_of(const float *scores, int64_t n, int64_t label) {
    int32_t rank = 0, n_nan = 0;
    if (label < 0 || label >= n)
        return (int32_t)CVY_ACCURACY_WRONG(n);
    float own = scores[label];
    for (int64_t k = 0; k < label; k++)
        rank += scores[k] >= own;
    for (int64_t k = label + 1; k < n; k++)
        rank += scores[k] > own;
    for (int64_t k = 0; k < n; k++)
        n_nan += scores[k] != scores[k];
    return n_nan ? (int32_t)CVY_ACCURACY_WRONG(n) : rank;
}

CPU_VECTOR static void accuracy_rows(const struct cpu_rows *me, int64_t first, int64_t end) {
    const float *logits = me->in[LOGITS];
    const int64_t *labels = me->in[LABELS];
    int32_t *ranks = me->out[CVY_ACCURACY_RANKS];
    for (int64_t i = first; i < end; i++) {
        int32_t rank = rank_of(logits + i * me->n, me->n, labels[i]);
        me->results[i] = rank;
        if (ranks)
            ranks[i] = rank;
    }
}

static void count_hits(const struct cpu_rows *me) {
    float *hits = me->out[CVY_ACCURACY_HITS];
    if (!hits)
        return;
    hits[0] = hits[1] = 0;
    for (int64_t i = 0; i < me->n_rows; i++) {
        hits[0] += me->results[i] == 0;
        hits[1] += me->results[i] < 5;
    }
}

CPU_ROWS_KERNEL(accuracy, .row = CPU_ROW_LAST, .span = accuracy_rows, .finish = count_hits)
