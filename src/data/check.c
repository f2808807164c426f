/* Reading a whole data set to find all that is bad in it: training would stop at the first bad file. */
#include "data/survey.h"

static void look(const struct cvy_dataset *dataset, int64_t i, cvy_status status,
                 const struct cvy_image *image, void *item) {
    (void)dataset, (void)i, (void)image;
    cvy_error_save(item, status);
}

static cvy_status tell(void *context, int64_t i, const void *item) {
    const struct cvy_bad_samples *out = context;
    const struct cvy_error *reason = item;
    (void)i;
    if (reason->code != CVY_OK)
        out->tell(out->context, reason->message);
    return CVY_OK;
}

cvy_status cvy_dataset_check(const struct cvy_dataset *dataset, int n_workers,
                             const struct cvy_bad_samples *out) {
    const struct cvy_survey survey = {
        .item_bytes = sizeof(struct cvy_error), .look = look, .tell = tell, .context = (void *)out};
    return cvy_survey_run(&survey, dataset, n_workers);
}
