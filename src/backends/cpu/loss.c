/* The losses of a shard: cross_entropy, soft_cross_entropy, batch_mean, and their gradients. An image's loss is
   computed by itself; the sum over the images is in double precision, in their order. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/softmax.h"
#include "ops/cross_entropy.h"

#include <math.h>

enum { LOGITS, LABELS, DIVISOR };                                 /* inputs of cross_entropy */
enum { DLOSS, PROBABILITIES, BACKWARD_LABELS, BACKWARD_DIVISOR }; /* of its gradient */

static double smoothing_of(const struct cpu_rows *me) {
    return ((const struct cvy_cross_entropy_attrs *)me->attrs)->label_smoothing;
}

/* ---- cross_entropy: logits [N,K] ----------------------------------------------------------------- */

/* With lse = log of the sum of exp(x): loss = -(1 - s) (x[label] - lse) - s / K sum of (x - lse) */
CPU_VECTOR static void cross_entropy_rows(const struct cpu_rows *me, int64_t first, int64_t end) {
    const int64_t *labels = me->in[LABELS];
    float *probabilities = me->out[CVY_CROSS_ENTROPY_PROBABILITIES],
          *losses = me->out[CVY_CROSS_ENTROPY_LOSSES];
    double smoothing = smoothing_of(me), classes = (double)me->n;
    for (int64_t i = first; i < end; i++) {
        const float *x = (const float *)me->in[LOGITS] + i * me->n;
        struct cpu_softmax row = cpu_softmax_row(x, me->n, probabilities ? probabilities + i * me->n : NULL);
        bool is_class = labels[i] >= 0 && labels[i] < me->n;
        double log_sum = log(row.sum), below = is_class ? (double)x[labels[i]] - (double)row.largest : NAN;
        double loss = (1 - smoothing) * (log_sum - below);
        if (smoothing > 0)
            loss += smoothing * (log_sum - row.below / classes);
        me->results[i] = loss;
        if (losses)
            losses[i] = (float)loss;
    }
}

static void sum_losses(const struct cpu_rows *me) {
    float *loss = me->out[CVY_CROSS_ENTROPY_LOSS];
    double sum = 0;
    for (int64_t i = 0; i < me->n_rows; i++)
        sum += me->results[i];
    if (loss)
        *loss = (float)(sum / (double)*(const float *)me->in[DIVISOR]);
}

/* dlogits = dloss / divisor (p - (1 - s) [k = label] - s / K); it may lie where p does. */
CPU_VECTOR static void cross_entropy_backward_rows(const struct cpu_rows *me, int64_t first, int64_t end) {
    const int64_t *labels = me->in[BACKWARD_LABELS];
    double smoothing = smoothing_of(me), spread = smoothing / (double)me->n;
    double dloss = *(const float *)me->in[DLOSS], divisor = *(const float *)me->in[BACKWARD_DIVISOR];
    for (int64_t i = first; i < end; i++) {
        const float *p = (const float *)me->in[PROBABILITIES] + i * me->n;
        float *dx = (float *)me->out[0] + i * me->n;
        bool is_class = labels[i] >= 0 && labels[i] < me->n;
        double scale = is_class ? dloss / divisor : NAN;
        double of_label = is_class ? (double)p[labels[i]] - (1 - smoothing) - spread : NAN;
        for (int64_t k = 0; k < me->n; k++)
            dx[k] = (float)scale * (p[k] - (float)spread);
        if (is_class)
            dx[labels[i]] = (float)(scale * of_label);
    }
}

/* ---- soft_cross_entropy: logits, targets [N,K] ----------------------------------------------------- */

/* With the target q = (1 - s) t + s / K: loss = sum of q (lse - x) */
CPU_VECTOR static void soft_cross_entropy_rows(const struct cpu_rows *me, int64_t first, int64_t end) {
    float *probabilities = me->out[CVY_CROSS_ENTROPY_PROBABILITIES],
          *losses = me->out[CVY_CROSS_ENTROPY_LOSSES];
    double smoothing = smoothing_of(me), spread = smoothing / (double)me->n;
    for (int64_t i = first; i < end; i++) {
        const float *x = (const float *)me->in[LOGITS] + i * me->n,
                    *t = (const float *)me->in[LABELS] + i * me->n;
        struct cpu_softmax row = cpu_softmax_row(x, me->n, probabilities ? probabilities + i * me->n : NULL);
        double log_sum = log(row.sum), loss = 0;
        for (int64_t k = 0; k < me->n; k++)
            loss += ((1 - smoothing) * (double)t[k] + spread) * (log_sum - (double)(x[k] - row.largest));
        me->results[i] = loss;
        if (losses)
            losses[i] = (float)loss;
    }
}

/* dlogits = dloss / divisor (p sum of q - q); it may lie where p does. */
CPU_VECTOR static void soft_cross_entropy_backward_rows(const struct cpu_rows *me, int64_t first,
                                                        int64_t end) {
    double smoothing = smoothing_of(me);
    float spread = (float)(smoothing / (double)me->n), rest = (float)(1 - smoothing);
    float scale = *(const float *)me->in[DLOSS] / *(const float *)me->in[BACKWARD_DIVISOR];
    for (int64_t i = first; i < end; i++) {
        const float *p = (const float *)me->in[PROBABILITIES] + i * me->n,
                    *t = (const float *)me->in[BACKWARD_LABELS] + i * me->n;
        float *dx = (float *)me->out[0] + i * me->n;
        double sum = 0;
        for (int64_t k = 0; k < me->n; k++)
            sum += (double)t[k];
        float whole = (float)((1 - smoothing) * sum + smoothing);
        for (int64_t k = 0; k < me->n; k++)
            dx[k] = scale * (p[k] * whole - (rest * t[k] + spread));
    }
}

/* ---- batch_mean: x [N], which is one row --------------------------------------------------------- */

static void batch_mean_row(const struct cpu_rows *me, int64_t first, int64_t end) {
    const float *x = me->in[0], *divisor = me->in[1];
    double sum = 0;
    (void)first, (void)end; /* 0 and 1 */
    for (int64_t i = 0; i < me->n; i++)
        sum += (double)x[i];
    *(float *)me->out[0] = (float)(sum / (double)*divisor);
}

static void batch_mean_backward_elements(const struct cpu_rows *me, int64_t first, int64_t end) {
    const float *dy = me->in[0], *divisor = me->in[1];
    float *dx = me->out[0], each = (float)((double)*dy / (double)*divisor);
    for (int64_t i = first; i < end; i++)
        dx[i] = each;
}

CPU_ROWS_KERNEL(cross_entropy, .row = CPU_ROW_LAST, .span = cross_entropy_rows, .finish = sum_losses)
CPU_ROWS_KERNEL(cross_entropy_backward, .of_output = true, .row = CPU_ROW_LAST,
                .span = cross_entropy_backward_rows)
CPU_ROWS_KERNEL(soft_cross_entropy, .row = CPU_ROW_LAST, .span = soft_cross_entropy_rows,
                .finish = sum_losses)
CPU_ROWS_KERNEL(soft_cross_entropy_backward, .of_output = true, .row = CPU_ROW_LAST,
                .span = soft_cross_entropy_backward_rows)
CPU_ROWS_KERNEL(batch_mean, .row = CPU_ROW_ALL, .span = batch_mean_row)
CPU_ROWS_KERNEL(batch_mean_backward, .of_output = true, .row = CPU_ROW_ELEMENT,
                .span = batch_mean_backward_elements)
