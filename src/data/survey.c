/* See survey.h. Sample i lies in batch i / BATCH, what was found in it at i % N_ITEMS until that batch was told. */
#include "data/survey.h"

#include "base/mem.h"
#include "data/prefetch.h"

#include <stdlib.h>

enum { BATCH = 64, N_SLOTS = 3, N_ITEMS = BATCH * N_SLOTS };

struct run {
    const struct cvy_survey *survey;
    const struct cvy_dataset *dataset;
    struct cvy_image *images; /* one a worker */
    char *items;
};

static void *item_of(const struct run *run, int64_t i) {
    return run->items + (size_t)(i % N_ITEMS) * run->survey->item_bytes;
}

static cvy_status read_sample(const struct cvy_dataset *dataset, int64_t i, struct cvy_image *image) {
    int64_t label;
    if (!dataset->is_unlabelled)
        CVY_TRY(cvy_dataset_label(dataset, i, &label));
    CVY_TRY(dataset->format->read(dataset, i, image));
    return CVY_OK;
}

/* As struct cvy_prefetch_spec has it. Only want of memory ends it, for that says nothing of the sample. */
static cvy_status look_at(void *context, int worker, int64_t first, int64_t n, int64_t *failed) {
    const struct run *run = context;
    struct cvy_image *image = &run->images[worker];
    for (*failed = first; *failed < first + n; ++*failed) {
        cvy_status status = read_sample(run->dataset, *failed, image);
        if (status == CVY_ERR_MEMORY)
            return status;
        run->survey->look(run->dataset, *failed, status, image, item_of(run, *failed));
    }
    return CVY_OK;
}

static cvy_status tell_all(const struct run *run, struct cvy_prefetch *prefetch) {
    const int64_t n = run->dataset->n;
    cvy_prefetch_start(prefetch, n);
    for (int64_t i = 0; i < n; i++) {
        if (i % BATCH == 0)
            CVY_TRY(cvy_prefetch_wait(prefetch, i / BATCH));
        CVY_TRY(run->survey->tell(run->survey->context, i, item_of(run, i)));
    }
    return CVY_OK;
}

cvy_status cvy_survey_run(const struct cvy_survey *survey, const struct cvy_dataset *dataset, int n_workers) {
    struct run run = {.survey = survey, .dataset = dataset};
    struct cvy_prefetch *prefetch = NULL;
    cvy_status status;
    CVY_TRY_OUT(CVY_ALLOC(run.images, (size_t)n_workers));
    CVY_TRY_OUT(cvy_alloc_items(N_ITEMS, survey->item_bytes, (void **)&run.items));
    const struct cvy_prefetch_spec spec = {
        .n_workers = n_workers, .n_slots = N_SLOTS, .batch_size = BATCH, .run = look_at, .context = &run};
    CVY_TRY_OUT(cvy_prefetch_new(&spec, &prefetch));
    CVY_TRY_OUT(tell_all(&run, prefetch));
out:
    cvy_prefetch_free(prefetch);
    for (int k = 0; run.images && k < n_workers; k++)
        cvy_image_free(&run.images[k]);
    free(run.images);
    free(run.items);
    return status;
}
