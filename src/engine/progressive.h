/* Progressive resizing: training begins with small images and ends with large ones. */
#ifndef CVY_ENGINE_PROGRESSIVE_H
#define CVY_ENGINE_PROGRESSIVE_H

#include "base/status.h"

struct cvy_progressive {
    int64_t first,
        last;     /* sides of the square images of the first and of the last epoch; 0: all epochs are alike */
    int64_t step; /* it grows in multiples of this */
    int64_t n_epochs;
};

/* "160:224", or with the step, which is 32 else: "160:224:16". CVY_ERR_USAGE: it is not that, or shrinks. */
cvy_status cvy_progressive_parse(const char *text, int64_t n_epochs, struct cvy_progressive *out);
/* The side of epoch e: first + (last - first) e / (n_epochs - 1), its growth rounded to a multiple of the step;
   `last` in the last epoch, and from then on. */
int64_t cvy_progressive_side(const struct cvy_progressive *progressive, int64_t epoch);

#endif
