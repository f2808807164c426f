/* The probabilities that a row of logits stands for. */
#ifndef CVY_ENGINE_SOFTMAX_H
#define CVY_ENGINE_SOFTMAX_H

#include <stdint.h>

struct cvy_softmax {
    double max, sum;
};

/* The class of the largest of n >= 1 logits, the first of equal ones. */
int64_t cvy_best_class(const float *logits, int64_t n);
/* Of n >= 1 finite logits. */
struct cvy_softmax cvy_softmax_of(const float *logits, int64_t n);
/* exp(logit - max) / sum: of one of the same logits. */
double cvy_softmax_probability(const struct cvy_softmax *softmax, float logit);

#endif
