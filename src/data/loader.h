/* What the engine tells a loader beyond the public interface. */
#ifndef CVY_DATA_LOADER_H
#define CVY_DATA_LOADER_H

#include "data/bad_list.h"

#include <convoy/convoy.h>

/* From the next epoch on, only the images of the shards first .. first + n - 1 are read, of the n_shards into which
   each batch is cut: shard s of a batch of k images begins at image floor(k s / n_shards). The memory of the others'
   pixels is left as it is; labels and indices are there for all. Local. */
void cvy_loader_set_share(struct cvy_loader *loader, int64_t n_shards, int64_t first, int64_t n);

/* From now on a sample that cannot be read (CVY_ERR_DATA) is noted, and the next one of the data set that can takes its
   place: batches keep their sizes, so nobody else needs to know. Which one it is follows from the data alone. Local. */
cvy_status cvy_loader_skip_bad(struct cvy_loader *loader);
/* Repeated augmentation (Hoffer et al., "Augment your batch", 2019): from the next epoch on each image that an epoch
   takes comes n_times one after another, with other augmentation each time; an epoch has as many images as before, of
   fewer samples. CVY_ERR_USAGE: there are not so many samples. Local. */
cvy_status cvy_loader_repeat(struct cvy_loader *loader, int64_t n_times);
/* cvy_loader_start, but that the epoch goes on after so many updates, each of options.accumulate batches: what was
   before is not read. The position of an epoch is this number: a run that saves it goes on with the batches that it
   would have had. CVY_ERR_USAGE: the epoch has not so many. Local. */
cvy_status cvy_loader_start_at(struct cvy_loader *loader, int64_t epoch, int64_t n_updates);

/* From the next epoch on images come out square, of this side, at most as large as without this call. CVY_ERR_USAGE:
   it does not fit. Local. */
cvy_status cvy_loader_resize(struct cvy_loader *loader, int64_t side);

/* How long a worker may be at one image until cvy_loader_next fails with CVY_ERR_LOST and its name; without a call it
   is two minutes. Without workers there is no deadline. Local. */
void cvy_loader_set_deadline(struct cvy_loader *loader, double seconds);
/* From now on the workers of `host`, which must have as many, read for both, and the loader's own are gone: starting an
   epoch of one ends the other's (CVY_END). Both belong to one thread. Local. */
cvy_status cvy_loader_join(struct cvy_loader *loader, struct cvy_loader *host);

/* Those noted so far by this process; NULL: they are not skipped. */
struct cvy_bad_list *cvy_loader_bad(const struct cvy_loader *loader);

#endif
