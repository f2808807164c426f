/* See mistakes.h. */
#include "engine/mistakes.h"

#include "base/mem.h"

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

/* Keeps the worst in their order; a new one goes behind those of the same loss. */
static void insert(struct cvy_mistakes *m, const struct cvy_mistake *new) {
    int at = m->n_worst;
    while (at > 0 && m->worst[at - 1].loss < new->loss)
        at--;
    if (at == CVY_N_WORST)
        return;
    m->n_worst += m->n_worst < CVY_N_WORST;
    memmove(&m->worst[at + 1], &m->worst[at], (size_t)(m->n_worst - 1 - at) * sizeof *m->worst);
    m->worst[at] = *new;
}

/* The largest logit's class, the first of equal ones. */
static int64_t best_of(const float *logits, int64_t n) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        best = logits[k] > logits[best] ? k : best;
    return best;
}

static double probability(const float *logits, int64_t n, int64_t k) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += exp((double)logits[j] - (double)logits[k]);
    return 1 / sum;
}

void cvy_mistakes_add(struct cvy_mistakes *m, const cvy_batch *batch, const float *losses) {
    for (int64_t i = 0; i < batch->n; i++) {
        const float *logits = m->logits + i * m->n_classes;
        const int64_t label = batch->labels[i], guess = best_of(logits, m->n_classes);
        if (m->counts)
            m->counts[label * m->n_classes + guess]++;
        if (guess == label || !isfinite(losses[i]))
            continue;
        insert(m, &(struct cvy_mistake){.index = batch->indices[i],
                                        .label = label,
                                        .guess = guess,
                                        .loss = losses[i],
                                        .p_guess = probability(logits, m->n_classes, guess)});
    }
}
