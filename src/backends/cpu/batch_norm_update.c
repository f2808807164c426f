/* batch_norm_update: running = (1 - momentum) running + momentum (statistic of the step), in place, channel by
   channel. Statistics of no images leave everything as it was. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/rows.h"
#include "ops/batch_norm.h"

enum { RUNNING_MEAN, RUNNING_VAR, NUM_BATCHES, STATS };

static void update_channels(const struct cpu_rows *me, int64_t first, int64_t end) {
    const float *stats = me->in[STATS]; /* sums over images of means [C], of variances [C], of images */
    double momentum = ((const struct cvy_batch_norm_attrs *)me->attrs)->momentum;
    double n = stats[2 * me->n_rows];
    if (!(n > 0))
        return;
    for (int64_t c = first; c < end; c++) {
        for (int part = RUNNING_MEAN; part <= RUNNING_VAR; part++) {
            float *running = (float *)me->out[part] + c;
            *running = (float)((1 - momentum) * (double)*running +
                               momentum * ((double)stats[part * me->n_rows + c] / n));
        }
    }
    if (first == 0) /* once: only the part with channel 0 has it */
        *(int64_t *)me->out[NUM_BATCHES] += 1;
}

CPU_ROWS_KERNEL(batch_norm_update, .row = CPU_ROW_ELEMENT, .span = update_channels)
