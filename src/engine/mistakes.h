/* What an evaluation got wrong: how often each class was taken for each other, and the images with the largest
   losses. */
#ifndef CVY_ENGINE_MISTAKES_H
#define CVY_ENGINE_MISTAKES_H

#include <convoy/convoy.h>

enum {
    CVY_N_WORST = 24,
    CVY_MOST_CONFUSED =
        2048, /* classes; of more than these there are no counts: the table would be too large */
};

struct cvy_mistake {
    int64_t index, label, guess; /* the image's place in its data set */
    double loss, p_guess;        /* the probability that the guess was given */
};

struct cvy_mistakes { /* zero-initialised: closed, and nothing is counted */
    int64_t n_classes;
    uint32_t *counts; /* n_classes x n_classes: of label and guess; NULL: too many classes */
    float *logits;    /* of one batch: where cvy_evaluate may put them */
    int n_worst;
    struct cvy_mistake
        worst[CVY_N_WORST]; /* of the wrong ones, the largest loss first; of equal ones the first seen */
};

cvy_status cvy_mistakes_open(struct cvy_mistakes *mistakes, int64_t n_classes, int64_t batch_size);
void cvy_mistakes_free(struct cvy_mistakes *mistakes);
/* Forgets what was counted. */
void cvy_mistakes_clear(struct cvy_mistakes *mistakes);
/* Counts an evaluated batch, whose logits are in place. */
void cvy_mistakes_add(struct cvy_mistakes *mistakes, const cvy_batch *batch, const float *losses);

#endif
