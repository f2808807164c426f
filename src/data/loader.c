/* The loader: epochs of batches from a data set.
   Which sample stands at which position of an epoch, and what is done to it, are functions of (seed, epoch,
   sample index) alone; workers only decide who computes it. Position p lies in batch p / batch_size, which
   lives in slot batch % n_slots. */
#include "data/loader_state.h"

#include "base/mem.h"
#include "base/rng.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    MAX_WORKERS = 1024,
    PAGE = 4096, /* bytes */
};

void cvy_loader_defaults(cvy_loader_options *options) {
    *options = (cvy_loader_options){.batch_size = 32,
                                    .workers = 2,
                                    .shuffle = true,
                                    .augment = true,
                                    .pad = -1,
                                    .flip = -1,
                                    .ra_magnitude = 9};
}

static cvy_status check_options(const struct cvy_dataset *dataset, const cvy_loader_options *options) {
    if (options->batch_size < 1)
        return CVY_FAIL(CVY_ERR_USAGE, "batch size %lld: must be at least 1", (long long)options->batch_size);
    if (options->accumulate < 0 || options->accumulate > INT32_MAX)
        return CVY_FAIL(CVY_ERR_USAGE, "%lld batches of one update: must be 1 to %d",
                        (long long)options->accumulate, INT32_MAX);
    if (options->workers < 0 || options->workers > MAX_WORKERS)
        return CVY_FAIL(CVY_ERR_USAGE, "%d workers: must be 0 to %d", options->workers, MAX_WORKERS);
    if (dataset->n < 1 || dataset->n > UINT32_MAX)
        return CVY_FAIL(CVY_ERR_DATA, "'%s' has %lld images: must be 1 to %lld", dataset->spec,
                        (long long)dataset->n, (long long)UINT32_MAX);
    if (options->augment && dataset->is_unlabelled)
        return CVY_FAIL(CVY_ERR_DATA, "'%s' has no labels: nothing to train on", dataset->spec);
    if (options->augment && options->batch_size > dataset->n)
        return CVY_FAIL(
            CVY_ERR_USAGE, "batch size %lld is larger than the %lld images of '%s': say at most %lld",
            (long long)options->batch_size, (long long)dataset->n, dataset->spec, (long long)dataset->n);
    return CVY_OK;
}

/* ---- making and freeing -------------------------------------------------------------------------- */

static cvy_status alloc_slots(struct cvy_loader *loader) {
    size_t n = (size_t)loader->batch_size, n_bytes;
    if (__builtin_mul_overflow(n, loader->image_bytes, &n_bytes) || n_bytes > SIZE_MAX - PAGE)
        return CVY_FAIL(CVY_ERR_MEMORY, "a batch of %zu images of %zu bytes is too large", n,
                        loader->image_bytes);
    for (int s = 0; s < loader->n_slots; s++) {
        struct cvy_loader_slot *slot = &loader->slots[s];
        slot->images = aligned_alloc(PAGE, cvy_align_up(n_bytes, PAGE));
        if (!slot->images)
            return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for a batch of %zu bytes", n_bytes);
        CVY_TRY(CVY_ALLOC(slot->labels, n));
        CVY_TRY(CVY_ALLOC(slot->indices, n));
    }
    return CVY_OK;
}

cvy_status cvy_loader_new(const cvy_dataset *dataset, const cvy_loader_options *options, cvy_loader **out) {
    CVY_TRY(check_options(dataset, options));
    struct cvy_loader *loader;
    cvy_status status;
    CVY_TRY(CVY_ALLOC(loader, 1));
    loader->dataset = dataset;
    loader->options = *options;
    loader->next_share = (struct cvy_loader_share){.n_shards = 1, .n = 1};
    loader->options.preset = NULL; /* the caller's text, used up by the plan */
    loader->batch_size = options->batch_size < dataset->n ? options->batch_size : dataset->n;
    int64_t n_batches = (dataset->n + loader->batch_size - 1) / loader->batch_size;
    loader->options.accumulate = options->accumulate ? options->accumulate : 1;
    if (loader->options.accumulate > n_batches) /* an epoch is one update at most */
        loader->options.accumulate = n_batches;
    loader->n_times = 1;
    loader->n_slots = options->workers ? CVY_PREFETCH_SLOTS : 1;
    loader->n_readers = options->workers ? options->workers : 1;
    CVY_TRY_OUT(cvy_transform_plan(dataset, options, &loader->full));
    loader->transform = loader->next_transform = loader->full;
    loader->image_bytes = cvy_transform_bytes(&loader->transform);
    CVY_TRY_OUT(CVY_ALLOC(loader->order, (size_t)dataset->n));
    CVY_TRY_OUT(CVY_ALLOC(loader->readers, (size_t)loader->n_readers));
    CVY_TRY_OUT(alloc_slots(loader));
    if (options->workers)
        CVY_TRY_OUT(cvy_prefetch_new(options->workers, &loader->prefetch));
    *out = loader;
    return CVY_OK;
out:
    cvy_loader_free(loader);
    return status;
}

void cvy_loader_free(cvy_loader *loader) {
    if (!loader)
        return;
    if (!cvy_prefetch_leave(loader->prefetch, loader)) { /* a worker still writes there, perhaps for ever */
        cvy_dataset_abandon(loader->dataset);
        return;
    }
    for (int s = 0; s < CVY_PREFETCH_SLOTS; s++) {
        free(loader->slots[s].images);
        free(loader->slots[s].labels);
        free(loader->slots[s].indices);
    }
    for (int i = 0; loader->readers && i < loader->n_readers; i++) {
        cvy_image_free(&loader->readers[i].image);
        cvy_transform_work_free(&loader->readers[i].work);
    }
    free(loader->readers);
    free(loader->order);
    cvy_bad_list_free(loader->bad);
    free(loader);
}

void cvy_loader_shape(const cvy_loader *loader, int64_t *channels, int64_t *height, int64_t *width) {
    *channels = loader->transform.channels;
    *height = loader->transform.height;
    *width = loader->transform.width;
}

void cvy_loader_set_share(struct cvy_loader *loader, int64_t n_shards, int64_t first, int64_t n) {
    loader->next_share = (struct cvy_loader_share){n_shards, first, n};
}

cvy_status cvy_loader_repeat(struct cvy_loader *loader, int64_t n_times) {
    if (n_times < 1 || n_times > loader->dataset->n)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "repeating each image %lld times: '%s' has %lld, so an epoch would not take a single one",
            (long long)n_times, loader->dataset->spec, (long long)loader->dataset->n);
    loader->n_times = n_times;
    return CVY_OK;
}

cvy_status cvy_loader_resize(struct cvy_loader *loader, int64_t side) {
    return cvy_transform_scale(&loader->full, loader->dataset, side, &loader->next_transform);
}

cvy_status cvy_loader_skip_bad(struct cvy_loader *loader) {
    if (!loader->bad)
        CVY_TRY(cvy_bad_list_new(&loader->bad));
    return CVY_OK;
}

struct cvy_bad_list *cvy_loader_bad(const struct cvy_loader *loader) {
    return loader->bad;
}

void cvy_loader_set_deadline(struct cvy_loader *loader, double seconds) {
    if (loader->prefetch)
        cvy_prefetch_set_deadline(loader->prefetch, seconds);
}

cvy_status cvy_loader_join(struct cvy_loader *loader, struct cvy_loader *host) {
    if (loader->options.workers != host->options.workers)
        return CVY_FAIL(CVY_ERR_USAGE, "a loader of %d workers cannot share those of one that has %d",
                        loader->options.workers, host->options.workers);
    if (!host->prefetch || loader->prefetch == host->prefetch)
        return CVY_OK;
    if (!cvy_prefetch_leave(loader->prefetch, loader))
        return CVY_FAIL(CVY_ERR_LOST, "a worker of this loader does not come back");
    cvy_prefetch_hold(host->prefetch);
    loader->prefetch = host->prefetch;
    return CVY_OK;
}

/* ---- epochs -------------------------------------------------------------------------------------- */

/* Fisher and Yates: position i takes one of those not yet placed, 0 .. i. */
static void fill_order(struct cvy_loader *loader) {
    const int64_t n = loader->dataset->n;
    struct cvy_rng rng;
    cvy_rng_init(&rng, loader->options.seed, CVY_RNG_SHUFFLE, 0, (uint32_t)loader->epoch);
    for (int64_t i = 0; i < n; i++)
        loader->order[i] = i;
    for (int64_t i = n - 1; i > 0 && loader->options.shuffle; i--) {
        int64_t j = cvy_rng_below(&rng, (uint32_t)i + 1), swapped = loader->order[i];
        loader->order[i] = loader->order[j];
        loader->order[j] = swapped;
    }
    for (int64_t i = n - 1; i > 0 && loader->n_times > 1; i--)
        loader->order[i] = loader->order[i / loader->n_times];
}

/* As struct cvy_prefetch_job has them. */
static cvy_status prepare(void *context, int worker, int64_t position) {
    return cvy_loader_read(context, worker, position);
}

static cvy_status fail_late(void *context, int worker, int64_t position, double seconds) {
    const struct cvy_loader *loader = context;
    (void)position; /* may have another sample than its own */
    return cvy_dataset_fail_late(loader->dataset, atomic_load(&loader->readers[worker].sample), seconds);
}

cvy_status cvy_loader_start(cvy_loader *loader, int64_t epoch) {
    CVY_TRY(cvy_loader_start_at(loader, epoch, 0));
    return CVY_OK;
}

cvy_status cvy_loader_start_at(struct cvy_loader *loader, int64_t epoch, int64_t n_updates) {
    const int64_t n_batches = (loader->dataset->n + loader->batch_size - 1) / loader->batch_size;
    const int64_t accumulate = loader->options.accumulate, most = (n_batches + accumulate - 1) / accumulate;
    if (epoch < 0 || epoch > UINT32_MAX)
        return CVY_FAIL(CVY_ERR_USAGE, "epoch %lld: must be 0 to %lld", (long long)epoch,
                        (long long)UINT32_MAX);
    if (n_updates < 0 || n_updates > most)
        return CVY_FAIL(CVY_ERR_USAGE, "an epoch after %lld updates: it has %lld", (long long)n_updates,
                        (long long)most);
    if (loader->prefetch)
        CVY_TRY(cvy_prefetch_stop(loader->prefetch));
    loader->epoch = epoch;
    loader->share = loader->next_share;
    loader->transform = loader->next_transform;
    loader->image_bytes = cvy_transform_bytes(&loader->transform);
    loader->n_batches = n_batches;
    loader->next_batch = n_updates == most ? n_batches : n_updates * accumulate;
    fill_order(loader);
    const struct cvy_prefetch_job job = {.n = loader->dataset->n,
                                         .first_batch = loader->next_batch,
                                         .batch_size = loader->batch_size,
                                         .n_slots = loader->n_slots,
                                         .run = prepare,
                                         .fail_late = fail_late,
                                         .context = loader};
    return loader->prefetch ? cvy_prefetch_start(loader->prefetch, &job) : CVY_OK;
}

/* Batch b, in the calling thread. */
static cvy_status read_batch(struct cvy_loader *loader, int64_t b) {
    const int64_t first = b * loader->batch_size, end = first + loader->batch_size;
    for (int64_t position = first; position < end && position < loader->dataset->n; position++)
        CVY_TRY(cvy_loader_read(loader, 0, position));
    return CVY_OK;
}

/* Images of the update that batch b belongs to: fewer in the last one of an epoch. */
static int64_t update_images(const struct cvy_loader *loader, int64_t b) {
    int64_t full = loader->batch_size * loader->options.accumulate;
    int64_t left = loader->dataset->n - b / loader->options.accumulate * full;
    return left < full ? left : full;
}

cvy_status cvy_loader_next(cvy_loader *loader, cvy_batch *out) {
    const int64_t b = loader->next_batch, first = b * loader->batch_size;
    if (b >= loader->n_batches || (loader->prefetch && !cvy_prefetch_serves(loader->prefetch, loader)))
        return CVY_END;
    int64_t n = loader->dataset->n - first;
    n = n > loader->batch_size ? loader->batch_size : n;
    if (loader->prefetch)
        CVY_TRY(cvy_prefetch_wait(loader->prefetch, b));
    else
        CVY_TRY(read_batch(loader, b));
    loader->next_batch++;
    const struct cvy_loader_slot *slot = &loader->slots[b % loader->n_slots];
    const struct cvy_transform *t = &loader->transform;
    *out = (cvy_batch){
        .n = n,
        .n_update = update_images(loader, b),
        .channels = t->channels,
        .height = t->height,
        .width = t->width,
        .dtype = t->dtype,
        .order = t->order,
        .images = slot->images,
        .labels = loader->dataset->is_unlabelled ? NULL : slot->labels,
        .indices = slot->indices,
    };
    for (int c = 0; c < 4; c++) {
        out->mean[c] = t->mean[c];
        out->std[c] = t->std[c];
    }
    return CVY_OK;
}
