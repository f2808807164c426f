/* Attributes of cross_entropy and cross_entropy_backward, and the outputs of cross_entropy and accuracy. */
#ifndef CVY_OPS_CROSS_ENTROPY_H
#define CVY_OPS_CROSS_ENTROPY_H

#include <stdint.h>

struct cvy_cross_entropy_attrs {
    double label_smoothing;
};

enum { CVY_CROSS_ENTROPY_LOSS, CVY_CROSS_ENTROPY_LOSSES, CVY_CROSS_ENTROPY_PROBABILITIES };
enum { CVY_ACCURACY_RANKS, CVY_ACCURACY_HITS };

/* log of the sum of exp(x) over n >= 1 numbers, without overflow */
double cvy_log_sum_exp(const double *x, int64_t n);

/* accuracy's rank where none is right: behind all K classes, and no top-5 hit however few they are. */
#define CVY_ACCURACY_WRONG(n_classes) ((n_classes) < 5 ? 5 : (n_classes))

#endif
