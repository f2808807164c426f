/* See survey.h. Sample i lies in batch i / BATCH, what was found in it at i % N_ITEMS until that batch was told. */
#include "data/survey.h"

#include "base/mem.h"
#include "data/prefetch.h"

#include <stdlib.h>

enum { BATCH = 64, N_ITEMS = BATCH * CVY_PREFETCH_SLOTS };

struct run {
    struct cvy_survey survey;
    const struct cvy_dataset *dataset;
    int n_workers;
    struct cvy_image *images; /* one a worker */
    char *items;
};

static void *item_of(const struct run *run, int64_t i) {
    return run->items + (size_t)(i % N_ITEMS) * run->survey.item_bytes;
}

static cvy_status read_sample(const struct cvy_dataset *dataset, int64_t i, struct cvy_image *image) {
    int64_t label;
    if (!dataset->is_unlabelled)
        CVY_TRY(cvy_dataset_label(dataset, i, &label));
    CVY_TRY(cvy_dataset_read(dataset, i, NULL, image));
    return CVY_OK;
}

/* As struct cvy_prefetch_job has it. Only want of memory ends it, for that says nothing of the sample. */
static cvy_status look_at(void *context, int worker, int64_t i) {
    const struct run *run = context;
    struct cvy_image *image = &run->images[worker];
    cvy_status status = read_sample(run->dataset, i, image);
    if (status == CVY_ERR_MEMORY)
        return status;
    run->survey.look(run->dataset, i, status, image, item_of(run, i));
    return CVY_OK;
}

static cvy_status fail_late(void *context, int worker, int64_t i, double seconds) {
    const struct run *run = context;
    (void)worker;
    return cvy_dataset_fail_late(run->dataset, i, seconds);
}

static cvy_status tell_all(struct run *run, struct cvy_prefetch *prefetch) {
    const int64_t n = run->dataset->n;
    const struct cvy_prefetch_job job = {.n = n,
                                         .batch_size = BATCH,
                                         .n_slots = CVY_PREFETCH_SLOTS,
                                         .run = look_at,
                                         .fail_late = fail_late,
                                         .context = run};
    CVY_TRY(cvy_prefetch_start(prefetch, &job));
    for (int64_t i = 0; i < n; i++) {
        if (i % BATCH == 0)
            CVY_TRY(cvy_prefetch_wait(prefetch, i / BATCH));
        CVY_TRY(run->survey.tell(run->survey.context, i, item_of(run, i)));
    }
    return CVY_OK;
}

static void free_run(struct run *run) {
    for (int k = 0; run->images && k < run->n_workers; k++)
        cvy_image_free(&run->images[k]);
    free(run->images);
    free(run->items);
    free(run);
}

cvy_status cvy_survey_run(const struct cvy_survey *survey, const struct cvy_dataset *dataset, int n_workers) {
    struct cvy_prefetch *prefetch = NULL;
    struct run *run;
    cvy_status status;
    CVY_TRY(CVY_ALLOC(run, 1));
    *run = (struct run){.survey = *survey, .dataset = dataset, .n_workers = n_workers};
    CVY_TRY_OUT(CVY_ALLOC(run->images, (size_t)n_workers));
    CVY_TRY_OUT(cvy_alloc_items(N_ITEMS, survey->item_bytes, (void **)&run->items));
    CVY_TRY_OUT(cvy_prefetch_new(n_workers, &prefetch));
    CVY_TRY_OUT(tell_all(run, prefetch));
out:
    if (cvy_prefetch_leave(prefetch, run))
        free_run(run);
    else
        cvy_dataset_abandon(dataset);
    return status;
}
