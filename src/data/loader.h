/* What the engine tells a loader beyond the public interface. */
#ifndef CVY_DATA_LOADER_H
#define CVY_DATA_LOADER_H

#include <convoy/convoy.h>

/* From the next epoch on, only the images of the shards first .. first + n - 1 are read, of the n_shards into which
   each batch is cut: shard s of a batch of k images begins at image floor(k s / n_shards). The memory of the others'
   pixels is left as it is; labels and indices are there for all. Local. */
void cvy_loader_set_share(struct cvy_loader *loader, int64_t n_shards, int64_t first, int64_t n);

#endif
