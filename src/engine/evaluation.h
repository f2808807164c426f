/* One pass over a data set in evaluation mode. Each image counts exactly once: the last batch is smaller
   instead of padded or dropped, and the losses are summed image by image in the data's order, so that the
   figures do not depend on devices or batch size. */
#ifndef CVY_ENGINE_EVALUATION_H
#define CVY_ENGINE_EVALUATION_H

#include "engine/metrics.h"
#include "engine/mistakes.h"

/* `loader` yields labels, in order, without augmentation. `mistakes`, opened for this batch size, are counted anew;
   NULL: they are not. In all processes or in none. Collective. */
cvy_status cvy_evaluate_all(cvy_session *session, cvy_loader *loader, int64_t batch_size,
                            struct cvy_mistakes *mistakes, struct cvy_tally *out);

#endif
