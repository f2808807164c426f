/* One position of an epoch: which sample is read to it, and what is made of it. */
#include "data/loader_state.h"

#include "base/rng.h"

#include <stdatomic.h>

enum { MAX_BAD_RUN = 1000 }; /* so many bad samples one after another are no accident */

/* Does this process need the image? Shard s of a batch of n holds the images from floor(n s / S) on. */
static bool is_in_share(const struct cvy_loader *loader, int64_t position) {
    const struct cvy_loader_share *share = &loader->share;
    int64_t at = position % loader->batch_size, n = loader->dataset->n - (position - at);
    n = n > loader->batch_size ? loader->batch_size : n;
    return at >= n * share->first / share->n_shards && at < n * (share->first + share->n) / share->n_shards;
}

/* Sample i, to this position. */
static cvy_status read_sample(const struct cvy_loader *loader, struct cvy_loader_reader *reader,
                              int64_t position, int64_t i) {
    const struct cvy_dataset *dataset = loader->dataset;
    const struct cvy_loader_slot *slot = &loader->slots[position / loader->batch_size % loader->n_slots];
    int64_t at = position % loader->batch_size;
    struct cvy_rng rng;
    const uint64_t time = (uint64_t)(position % loader->n_times); /* samples are fewer than 2^32 */
    cvy_rng_init(&rng, loader->options.seed, CVY_RNG_AUGMENT, (uint64_t)i | time << 32,
                 (uint32_t)loader->epoch);
    atomic_store(&reader->sample, i);
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
    return status == CVY_OK ? CVY_OK : cvy_dataset_name_error(dataset, i, status);
}

cvy_status cvy_loader_read(const struct cvy_loader *loader, int reader, int64_t position) {
    const int64_t n = loader->dataset->n, most = n < MAX_BAD_RUN ? n : MAX_BAD_RUN;
    int64_t i = loader->order[position];
    for (int64_t n_bad = 1;; n_bad++) {
        cvy_status status = read_sample(loader, &loader->readers[reader], position, i);
        if (status != CVY_ERR_DATA || !loader->bad || n_bad == most)
            return status;
        CVY_TRY(cvy_bad_list_note(loader->bad, i));
        i = i + 1 == n ? 0 : i + 1;
    }
}
