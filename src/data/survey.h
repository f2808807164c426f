/* Looking at every sample of a data set: worker threads read and look, what they found is told in the data's order by
   the calling thread. So a result does not depend on the number of threads. */
#ifndef CVY_DATA_SURVEY_H
#define CVY_DATA_SURVEY_H

#include "data/data.h"

/* How far it is; `tell` may be NULL. */
struct cvy_survey_progress {
    void (*tell)(void *context, int64_t n_done, int64_t n);
    void *context;
};

struct cvy_survey {
    size_t item_bytes; /* of what `look` finds in one sample */
    /* In a worker: sample i was read, or `status` says why not (cvy_error_save keeps the message). */
    void (*look)(const struct cvy_dataset *dataset, int64_t i, cvy_status status,
                 const struct cvy_image *image, void *item);
    /* In the calling thread, for each sample in order. */
    cvy_status (*tell)(void *context, int64_t i, const void *item);
    void *context;
};

/* n_workers: at least 1. Bad samples are no failure of the call; one that is not there after two minutes is. */
cvy_status cvy_survey_run(const struct cvy_survey *survey, const struct cvy_dataset *dataset, int n_workers);

#endif
