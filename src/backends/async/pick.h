/* Which of the streams that can go on goes on: random, and now and then one stream is let run ahead of the others for a
   while, so that orders differ by more than neighbours. The same seed picks the same. */
#ifndef CVY_ASYNC_PICK_H
#define CVY_ASYNC_PICK_H

#include "base/rng.h"

#include <stdbool.h>

struct async_picker {
    struct cvy_rng rng;
    int favourite, n_favourite; /* the stream that runs ahead, for so many picks yet */
};

/* One of the n streams that are ready; -1: none is. */
int async_pick(struct async_picker *picker, const bool *is_ready, int n);

#endif
