/* Where the images of one tar shard lie, and what their labels are: found by one walk over its headers, and kept in a
   file beside it, SHARD.index, or in the cache folder where that cannot be written. */
#ifndef CVY_DATA_TAR_INDEX_H
#define CVY_DATA_TAR_INDEX_H

#include "data/others.h"
#include "data/tar_reader.h"

struct cvy_tar_sample {
    int64_t offset; /* of the file's bytes */
    uint32_t size;
    uint32_t name, label; /* places in the index's text */
    uint32_t
        is_said; /* 1: a .cls beside the image holds the label; 0: it is the folder's name, "" for none */
};

struct cvy_tar_index {
    int64_t size, mtime; /* of the shard; mtime in ns */
    size_t n, n_text;
    const struct cvy_tar_sample *samples;
    const char *text;    /* NUL-terminated pieces */
    const char *classes; /* the member __classes__: a name a line; "" for none */
    struct cvy_others others;
    char *bytes; /* owned; all pointers lead there */
    size_t n_bytes;
};

/* The member of that name lists the classes; labels are then places in the list. */
#define CVY_TAR_CLASSES "__classes__"

/* Opens a shard to read, and says its size and the time of its last change. The caller closes *fd. */
cvy_status cvy_tar_open(const char *path, int *fd, int64_t *size, int64_t *mtime);

/* From the kept file when it fits the shard, else by a walk, whose result is kept. The caller frees the index. */
cvy_status cvy_tar_index_open(const char *path, struct cvy_tar_index *out);
void cvy_tar_index_free(struct cvy_tar_index *index);

/* By a walk over all members. The message of an error is without the archive's name. */
cvy_status cvy_tar_index_scan(const struct cvy_tar_source *source, int64_t mtime, struct cvy_tar_index *out);

/* From the content of a kept file, which is `bytes`, 8-aligned; out->bytes is not set. False: it is broken. */
bool cvy_tar_index_parse(const char *bytes, size_t n_bytes, struct cvy_tar_index *out);

#endif
