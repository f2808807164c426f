/* The classes of tar shards: the list of a member __classes__, or numbers, or names. */
#ifndef CVY_DATA_TAR_CLASSES_H
#define CVY_DATA_TAR_CLASSES_H

#include "base/vec.h"
#include "data/data.h"
#include "data/tar_index.h"

struct cvy_tar_shard {
    char *path;
    struct cvy_tar_index index;
};

struct cvy_tar_class {
    const char *name; /* the data set's */
    int64_t number;
};

struct cvy_tar_classes {
    bool are_numbers; /* every .cls is a number, and there is no list */
    int64_t n;
    CVY_VEC(struct cvy_tar_class) sorted; /* by name */
};

/* Finds the classes of the shards, which are at least one, and gives them to the head. */
cvy_status cvy_tar_classes_find(const struct cvy_tar_shard *shards, size_t n, struct cvy_dataset *head,
                                struct cvy_tar_classes *out);

/* The labels of a shard's samples, index.n of them. CVY_ERR_DATA: one that is no class, or none. */
cvy_status cvy_tar_classes_label(const struct cvy_tar_classes *classes, const struct cvy_tar_shard *shard,
                                 int32_t *labels);

#endif
