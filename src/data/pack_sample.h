/* One sample as it goes into a shard, made by a worker: its file as it is, or a smaller image. */
#ifndef CVY_DATA_PACK_SAMPLE_H
#define CVY_DATA_PACK_SAMPLE_H

#include "data/resize.h"

struct cvy_pack_sample {
    char *bytes; /* of the image file, from malloc */
    size_t n_bytes;
    const char *suffix; /* "jpg", "png", "webp" */
    int64_t label;
    bool is_smaller; /* than it was */
};

/* Working memory of one thread; zero-initialised is ready. */
struct cvy_pack_memory {
    struct cvy_image whole, small;
    struct cvy_resizer resizer;
};
void cvy_pack_memory_free(struct cvy_pack_memory *memory);

/* max_side: as in struct cvy_pack. On failure, which names the sample, out->bytes is NULL. Local. */
cvy_status cvy_pack_sample_make(const struct cvy_dataset *dataset, int64_t i, int64_t max_side,
                                struct cvy_pack_memory *memory, struct cvy_pack_sample *out);

#endif
