/* Reading a whole data set to find what is wrong with it, all of it at once: training would stop at the first bad
   file. Worker threads read ahead; reasons are told in the data's order. Sample i lies in batch i / BATCH, its
   reason at i % N_REASONS until that batch was told. */
#include "base/mem.h"
#include "data/data.h"
#include "data/prefetch.h"

#include <stdlib.h>

enum { BATCH = 64, N_SLOTS = 3, N_REASONS = BATCH * N_SLOTS };

struct check {
    const struct cvy_dataset *dataset;
    struct cvy_image *images; /* one a worker */
    struct cvy_error *reasons;
};

static cvy_status read_sample(const struct cvy_dataset *dataset, int64_t i, struct cvy_image *image) {
    int64_t label;
    if (!dataset->is_unlabelled)
        CVY_TRY(cvy_dataset_label(dataset, i, &label));
    CVY_TRY(dataset->format->read(dataset, i, image));
    return CVY_OK;
}

/* As struct cvy_prefetch_spec has it, but that nothing ends it. */
static cvy_status read_samples(void *context, int worker, int64_t first, int64_t n, int64_t *failed) {
    struct check *check = context;
    (void)failed;
    for (int64_t i = first; i < first + n; i++) {
        cvy_status status = read_sample(check->dataset, i, &check->images[worker]);
        cvy_error_save(&check->reasons[i % N_REASONS], status);
    }
    return CVY_OK;
}

/* Batch after batch, told in order. */
static cvy_status tell_all(const struct check *check, struct cvy_prefetch *prefetch,
                           const struct cvy_bad_samples *out) {
    const int64_t n = check->dataset->n;
    cvy_prefetch_start(prefetch, n);
    for (int64_t i = 0; i < n; i++) {
        const struct cvy_error *reason = &check->reasons[i % N_REASONS];
        if (i % BATCH == 0)
            CVY_TRY(cvy_prefetch_wait(prefetch, i / BATCH));
        if (reason->code != CVY_OK)
            out->tell(out->context, reason->message);
    }
    return CVY_OK;
}

cvy_status cvy_dataset_check(const struct cvy_dataset *dataset, int n_workers,
                             const struct cvy_bad_samples *out) {
    struct check check = {.dataset = dataset};
    struct cvy_prefetch *prefetch = NULL;
    cvy_status status;
    CVY_TRY_OUT(CVY_ALLOC(check.images, (size_t)n_workers));
    CVY_TRY_OUT(CVY_ALLOC(check.reasons, N_REASONS));
    const struct cvy_prefetch_spec spec = {.n_workers = n_workers,
                                           .n_slots = N_SLOTS,
                                           .batch_size = BATCH,
                                           .run = read_samples,
                                           .context = &check};
    CVY_TRY_OUT(cvy_prefetch_new(&spec, &prefetch));
    CVY_TRY_OUT(tell_all(&check, prefetch, out));
out:
    cvy_prefetch_free(prefetch);
    for (int k = 0; check.images && k < n_workers; k++)
        cvy_image_free(&check.images[k]);
    free(check.images);
    free(check.reasons);
    return status;
}
