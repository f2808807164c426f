/* Writing a data set of image files as tar shards, PREFIX-train-00000.tar and so on, which tar: reads as the same
   samples in the same order with the same classes. */
#ifndef CVY_DATA_PACK_H
#define CVY_DATA_PACK_H

#include "data/data.h"

enum { CVY_PACK_QUALITY = 90 };

struct cvy_pack {
    const char *prefix;
    int64_t max_side;    /* larger images become JPEG of this longer side, upright; 0: bytes are copied */
    int64_t shard_bytes; /* a shard ends with the image that reaches this */
    int n_workers;       /* threads that read and make smaller, at least 1; the shards are the same for any */
    /* what was written */
    int64_t n_shards, n_bytes, n_encoded;
};

/* All shards appear together at the end; after a failure none is there. CVY_ERR_USAGE: some are there already, or there
   are no image files. CVY_ERR_LOST: an image was not there after two minutes; its data set is then abandoned. Local. */
cvy_status cvy_pack_write(const struct cvy_dataset *train, const struct cvy_dataset *val,
                          struct cvy_pack *pack);

#endif
