/* What the loader's files share: loader.c makes it and runs its epochs, loader_read.c fills positions. */
#ifndef CVY_DATA_LOADER_STATE_H
#define CVY_DATA_LOADER_STATE_H

#include "data/loader.h"
#include "data/prefetch.h"
#include "data/transform.h"

struct cvy_loader_slot {
    uint8_t *images; /* batch_size x image_bytes; whole pages, so that a device may pin them */
    int64_t *labels, *indices;
};

struct cvy_loader_reader { /* one thread's working memory */
    struct cvy_image image;
    struct cvy_transform_work work;
    _Atomic int64_t sample; /* that it is at */
};

struct cvy_loader_share {
    int64_t n_shards, first, n; /* the images of n shards from `first` on are read, of n_shards */
};

struct cvy_loader {
    const struct cvy_dataset *dataset;
    cvy_loader_options options;
    struct cvy_loader_share share, next_share;      /* of this epoch, and of the next */
    struct cvy_transform transform, next_transform; /* of this epoch, and of the next */
    struct cvy_transform full;                      /* as the options say: the slots have room for it */
    size_t image_bytes;                             /* of this epoch */
    int64_t batch_size;                             /* at most the data set's size */
    int64_t *order;                                 /* order[position] = sample index */
    int64_t epoch, next_batch, n_batches;
    int n_slots, n_readers;
    struct cvy_loader_slot slots[CVY_PREFETCH_SLOTS];
    struct cvy_loader_reader *readers; /* worker k uses readers[k] */
    struct cvy_prefetch *prefetch;     /* NULL: no workers */
    int64_t n_times;                   /* that a sample comes one after another */
    struct cvy_bad_list *bad;          /* NULL: a bad sample is an error */
};

/* Reads the sample whose turn it is to this position or, where bad ones are skipped, the next of the set that can be
   read. */
cvy_status cvy_loader_read(const struct cvy_loader *loader, int reader, int64_t position);

#endif
