/* See mistakes.h. */
#include "engine/mistakes.h"

#include "base/mem.h"
#include "base/ranking.h"
#include "engine/softmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

cvy_status cvy_mistakes_open(struct cvy_mistakes *m, int64_t n_classes, int64_t batch_size) {
    m->n_classes = n_classes;
    if (n_classes <= CVY_MOST_CONFUSED)
        CVY_TRY(CVY_ALLOC(m->counts, (size_t)(n_classes * n_classes)));
    return CVY_ALLOC(m->logits, (size_t)(n_classes * batch_size));
}

void cvy_mistakes_free(struct cvy_mistakes *m) {
    free(m->counts);
    free(m->logits);
    *m = (struct cvy_mistakes){0};
}

void cvy_mistakes_clear(struct cvy_mistakes *m) {
    if (m->counts)
        memset(m->counts, 0, (size_t)(m->n_classes * m->n_classes) * sizeof *m->counts);
    m->n_worst = 0;
}

static int larger_loss_first(const void *a, const void *b) {
    const struct cvy_mistake *x = a, *y = b;
    return (x->loss < y->loss) - (x->loss > y->loss);
}

void cvy_mistakes_add(struct cvy_mistakes *m, const cvy_batch *batch, const float *losses) {
    for (int64_t i = 0; i < batch->n; i++) {
        const float *logits = m->logits + i * m->n_classes;
        const int64_t label = batch->labels[i], guess = cvy_best_class(logits, m->n_classes);
        if (m->counts)
            m->counts[label * m->n_classes + guess]++;
        if (guess == label || !isfinite(losses[i]))
            continue;
        const struct cvy_softmax softmax = cvy_softmax_of(logits, m->n_classes);
        const struct cvy_mistake mistake = {.index = batch->indices[i],
                                            .label = label,
                                            .guess = guess,
                                            .loss = losses[i],
                                            .p_guess = cvy_softmax_probability(&softmax, logits[guess])};
        cvy_rank(m->worst, sizeof mistake, &m->n_worst, CVY_N_WORST, &mistake, larger_loss_first);
    }
}
