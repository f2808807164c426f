/* The loader: epochs of batches from a data set.
   Which sample stands at which position of an epoch, and what is done to it, are functions of (seed, epoch,
   sample index) alone; workers only decide who computes it. Position p lies in batch p / batch_size, which
   lives in slot batch % n_slots. */
#include "data/loader.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/prefetch.h"
#include "data/transform.h"

#include <stdlib.h>

enum { N_SLOTS = 3 /* the caller's batch and two ahead */, MAX_WORKERS = 1024 };
enum { MAX_BAD_RUN = 1000 }; /* so many bad samples one after another are no accident */

struct slot {
    uint8_t *images; /* batch_size x image_bytes, 64-byte aligned */
    int64_t *labels, *indices;
};

struct reader { /* one thread's working memory */
    struct cvy_image image;
    struct cvy_transform_work work;
};

struct cvy_loader {
    const struct cvy_dataset *dataset;
    cvy_loader_options options;
    struct share {
        int64_t n_shards, first, n; /* the images of n shards from `first` on are read, of n_shards */
    } share, next_share;            /* of this epoch, and of the next */
    struct cvy_transform transform;
    size_t image_bytes;
    int64_t batch_size; /* at most the data set's size */
    int64_t *order;     /* order[position] = sample index */
    int64_t epoch, next_batch, n_batches;
    int n_slots, n_readers;
    struct slot slots[N_SLOTS];
    struct reader *readers;
    struct cvy_prefetch *prefetch; /* NULL: no workers */
    int64_t n_times;               /* that a sample comes one after another */
    struct cvy_bad_list *bad;      /* NULL: a bad sample is an error */
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

/* ---- reading ------------------------------------------------------------------------------------- */

/* Does this process need the image? Shard s of a batch of n holds the images from floor(n s / S) on. */
static bool is_in_share(const struct cvy_loader *loader, int64_t position) {
    const struct share *share = &loader->share;
    int64_t at = position % loader->batch_size, n = loader->dataset->n - (position - at);
    n = n > loader->batch_size ? loader->batch_size : n;
    return at >= n * share->first / share->n_shards && at < n * (share->first + share->n) / share->n_shards;
}

/* Sample i, to this position. */
static cvy_status read_sample(const struct cvy_loader *loader, struct reader *reader, int64_t position,
                              int64_t i) {
    const struct cvy_dataset *dataset = loader->dataset;
    const struct slot *slot = &loader->slots[position / loader->batch_size % loader->n_slots];
    int64_t at = position % loader->batch_size;
    struct cvy_rng rng;
    const uint64_t time = (uint64_t)(position % loader->n_times); /* samples are fewer than 2^32 */
    cvy_rng_init(&rng, loader->options.seed, CVY_RNG_AUGMENT, (uint64_t)i | time << 32,
                 (uint32_t)loader->epoch);
    slot->indices[at] = i;
    if (!dataset->is_unlabelled)
        CVY_TRY(cvy_dataset_label(dataset, i, &slot->labels[at]));
    if (!is_in_share(loader, position))
        return CVY_OK;
    struct cvy_transform_draw draw = {&loader->transform, &rng};
    struct cvy_image_part part;
    bool is_part = cvy_transform_part(&draw, &part);
    CVY_TRY(cvy_dataset_read(dataset, i, is_part ? &part : NULL, &reader->image));
    cvy_status status = cvy_transform_apply(&draw, &reader->work, &reader->image,
                                            slot->images + (size_t)at * loader->image_bytes);
    if (status == CVY_OK)
        return CVY_OK;
    if (dataset->format->path)
        return cvy_fail_prefix(status, "%s: ", dataset->format->path(dataset, i));
    return cvy_fail_prefix(status, "'%s', image %lld: ", dataset->spec, (long long)i);
}

/* The sample whose turn it is or, where bad ones are skipped, the next of the set that can be read. */
static cvy_status read_position(const struct cvy_loader *loader, struct reader *reader, int64_t position) {
    const int64_t n = loader->dataset->n, most = n < MAX_BAD_RUN ? n : MAX_BAD_RUN;
    int64_t i = loader->order[position];
    for (int64_t n_bad = 1;; n_bad++) {
        cvy_status status = read_sample(loader, reader, position, i);
        if (status != CVY_ERR_DATA || !loader->bad || n_bad == most)
            return status;
        CVY_TRY(cvy_bad_list_note(loader->bad, i));
        i = i + 1 == n ? 0 : i + 1;
    }
}

/* As struct cvy_prefetch_spec has it: worker k uses readers[k]. */
static cvy_status read_positions(void *context, int worker, int64_t first, int64_t n, int64_t *failed) {
    const struct cvy_loader *loader = context;
    for (*failed = first; *failed < first + n; ++*failed)
        CVY_TRY(read_position(loader, &loader->readers[worker], *failed));
    return CVY_OK;
}

/* ---- making and freeing -------------------------------------------------------------------------- */

static cvy_status alloc_slots(struct cvy_loader *loader) {
    size_t n = (size_t)loader->batch_size, n_bytes;
    if (__builtin_mul_overflow(n, loader->image_bytes, &n_bytes) || n_bytes > SIZE_MAX - CVY_ALIGN)
        return CVY_FAIL(CVY_ERR_MEMORY, "a batch of %zu images of %zu bytes is too large", n,
                        loader->image_bytes);
    for (int s = 0; s < loader->n_slots; s++) {
        struct slot *slot = &loader->slots[s];
        slot->images = aligned_alloc(CVY_ALIGN, cvy_align_up(n_bytes, CVY_ALIGN));
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
    loader->next_share = (struct share){.n_shards = 1, .n = 1};
    loader->options.preset = NULL; /* the caller's text, used up by the plan */
    loader->batch_size = options->batch_size < dataset->n ? options->batch_size : dataset->n;
    int64_t n_batches = (dataset->n + loader->batch_size - 1) / loader->batch_size;
    loader->options.accumulate = options->accumulate ? options->accumulate : 1;
    if (loader->options.accumulate > n_batches) /* an epoch is one update at most */
        loader->options.accumulate = n_batches;
    loader->n_times = 1;
    loader->n_slots = options->workers ? N_SLOTS : 1;
    loader->n_readers = options->workers ? options->workers : 1;
    CVY_TRY_OUT(cvy_transform_plan(dataset, options, &loader->transform));
    loader->image_bytes = cvy_transform_bytes(&loader->transform);
    CVY_TRY_OUT(CVY_ALLOC(loader->order, (size_t)dataset->n));
    CVY_TRY_OUT(CVY_ALLOC(loader->readers, (size_t)loader->n_readers));
    CVY_TRY_OUT(alloc_slots(loader));
    if (options->workers) {
        const struct cvy_prefetch_spec spec = {.n_workers = options->workers,
                                               .n_slots = loader->n_slots,
                                               .batch_size = loader->batch_size,
                                               .run = read_positions,
                                               .context = loader};
        CVY_TRY_OUT(cvy_prefetch_new(&spec, &loader->prefetch));
    }
    *out = loader;
    return CVY_OK;
out:
    cvy_loader_free(loader);
    return status;
}

void cvy_loader_free(cvy_loader *loader) {
    if (!loader)
        return;
    cvy_prefetch_free(loader->prefetch);
    for (int s = 0; s < N_SLOTS; s++) {
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
    loader->next_share = (struct share){n_shards, first, n};
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

cvy_status cvy_loader_skip_bad(struct cvy_loader *loader) {
    if (!loader->bad)
        CVY_TRY(cvy_bad_list_new(&loader->bad));
    return CVY_OK;
}

struct cvy_bad_list *cvy_loader_bad(const struct cvy_loader *loader) {
    return loader->bad;
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

cvy_status cvy_loader_start(cvy_loader *loader, int64_t epoch) {
    if (epoch < 0 || epoch > UINT32_MAX)
        return CVY_FAIL(CVY_ERR_USAGE, "epoch %lld: must be 0 to %lld", (long long)epoch,
                        (long long)UINT32_MAX);
    if (loader->prefetch)
        cvy_prefetch_stop(loader->prefetch);
    loader->epoch = epoch;
    loader->share = loader->next_share;
    loader->next_batch = 0;
    loader->n_batches = (loader->dataset->n + loader->batch_size - 1) / loader->batch_size;
    fill_order(loader);
    if (loader->prefetch)
        cvy_prefetch_start(loader->prefetch, loader->dataset->n);
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
    if (b >= loader->n_batches)
        return CVY_END;
    int64_t n = loader->dataset->n - first, failed;
    n = n > loader->batch_size ? loader->batch_size : n;
    if (loader->prefetch)
        CVY_TRY(cvy_prefetch_wait(loader->prefetch, b));
    else
        CVY_TRY(read_positions(loader, 0, first, n, &failed));
    loader->next_batch++;
    const struct slot *slot = &loader->slots[b % loader->n_slots];
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
