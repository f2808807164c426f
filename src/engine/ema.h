/* --model-ema: the average of the weights over the training, as torchvision's reference script has it: after every
   N-th update of an epoch avg = decay avg + (1 - decay) weights, of parameters and buffers alike; the first time, and
   during a warm-up of the learning rate, a copy. It lies on the host and costs one more copy of the weights there; to
   be judged or saved it takes their place in the session for a while. */
#ifndef CVY_ENGINE_EMA_H
#define CVY_ENGINE_EMA_H

#include "engine/session.h"

struct cvy_ema_options {
    int64_t steps; /* updates between two; 0: there is no average */
    double decay;  /* of updates of one image each, in a training of one epoch */
};

struct cvy_ema { /* zeroed: there is none */
    cvy_session *session;
    int64_t steps;
    double decay;       /* of one averaging */
    int64_t n_averaged; /* times that it was; 0: the next one copies */
    char *average, *one;
};

/* torchvision's: 1 - min(1, (1 - decay) images of an update x steps / epochs). Local. */
double cvy_ema_decay(const struct cvy_ema_options *options, int64_t n_images, int64_t n_epochs);
/* Begins with the session's weights. `session` must outlive it. Collective, as all that follow. */
cvy_status cvy_ema_open(struct cvy_ema *ema, cvy_session *session, int64_t steps, double decay);
/* The session's weights as they are now. */
cvy_status cvy_ema_copy(struct cvy_ema *ema);
/* After the step of this number within its epoch (0, 1, …): averages when it is due. */
cvy_status cvy_ema_step(struct cvy_ema *ema, int64_t step, bool is_warmup);
/* Exchanges the average and the session's weights; twice is as it was. */
cvy_status cvy_ema_swap(struct cvy_ema *ema);
void cvy_ema_free(struct cvy_ema *ema);

#endif
