/* See softmax.h. The largest logit is subtracted, so that nothing overflows. */
#include "engine/softmax.h"

#include <math.h>

int64_t cvy_best_class(const float *logits, int64_t n) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        best = logits[k] > logits[best] ? k : best;
    return best;
}

struct cvy_softmax cvy_softmax_of(const float *logits, int64_t n) {
    struct cvy_softmax s = {.max = (double)logits[cvy_best_class(logits, n)]};
    for (int64_t k = 0; k < n; k++)
        s.sum += exp((double)logits[k] - s.max);
    return s;
}

double cvy_softmax_probability(const struct cvy_softmax *softmax, float logit) {
    return exp((double)logit - softmax->max) / softmax->sum;
}
