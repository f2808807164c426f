/* profile.json as `convoy train --profile` wrote it (profile_write.c). */
#ifndef CVY_ENGINE_PROFILE_FILE_H
#define CVY_ENGINE_PROFILE_FILE_H

#include "engine/replay.h"

#include <jansson.h>

struct cvy_profile_operator { /* of a device: in one step */
    const char *name;
    double us, calls;
};

struct cvy_profile_device {
    const char *name;
    int64_t process;
    double cost; /* share of the network's arithmetic that its stage has, as the strategy estimates it */
    CVY_VEC(struct cvy_profile_operator) operators;
    CVY_VEC(double) bucket_bytes; /* by the bucket's number, those of other stages too */
};

struct cvy_profile_file { /* zero-initialised: empty */
    json_t *root;         /* owner of the texts */
    const char *model, *data, *strategy, *device_list;
    int64_t images; /* that the training set has */
    int64_t batch_size, accumulate, shards, threads, processes, workers, cores;
    double bucket_mb, first_bucket_mb, device_memory;
    bool has_streams; /* of the devices: instructions are timed when they are enqueued, not when they run */
    int64_t steps;    /* that count */
    double step_us, wait_us, span_us; /* a step: an update; wait: for images; span: of the devices */
    CVY_VEC(struct cvy_profile_device) devices;
    struct cvy_replay replay; /* linked; its devices in the same order */
};

/* Takes `root`, also on failure. `path` is for errors. CVY_ERR_DATA names what is missing or wrong. `out` is
   zero-initialised; release it with cvy_profile_file_free also on failure. Local. */
cvy_status cvy_profile_file_read(json_t *root, const char *path, struct cvy_profile_file *out);
void cvy_profile_file_free(struct cvy_profile_file *file);

#endif
