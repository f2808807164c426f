/* The scale of the loss with --amp fp16: gradients of activations are float16 and would vanish below 6e-8, so the
   loss is multiplied by it before the backward pass and the gradients of parameters divided by it after. As PyTorch's
   GradScaler does it: an update whose gradients are not all finite is skipped and the scale halved; after
   GROWTH_INTERVAL good updates in a row it is doubled. Every device looks at the same reduced gradients and comes to
   the same decision. */
#ifndef CVY_ENGINE_SCALE_H
#define CVY_ENGINE_SCALE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { CVY_GROWTH_INTERVAL = 2000 };

/* With scale 0 it counts what --on-nan skip leaves out. */
struct cvy_loss_scale {
    double scale;      /* a power of two; 0: nothing is scaled */
    int64_t n_good;    /* updates since it changed */
    int64_t n_skipped; /* updates, ever */
    bool is_skipped;   /* the newest was */
};

/* How it begins. */
struct cvy_loss_scale cvy_loss_scale_begin(void);
/* After an update. CVY_ERR_NAN: the scale has become so small that it does not help. Local. */
cvy_status cvy_loss_scale_settle(struct cvy_loss_scale *s, bool is_skipped);

#endif
