/* Members of a tar archive: ustar, with the long names of pax and of GNU tar. */
#ifndef CVY_DATA_TAR_READER_H
#define CVY_DATA_TAR_READER_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CVY_TAR_BLOCK = 512, CVY_TAR_NAME = 4096 };

/* Where the bytes come from: all n_bytes at `offset`, which lie within `size`, or an error. */
struct cvy_tar_source {
    cvy_status (*read)(void *context, int64_t offset, void *into, size_t n_bytes);
    void *context;
    int64_t size;
};

struct cvy_tar {
    const struct cvy_tar_source *source;
    int64_t at;              /* of the next header */
    int64_t offset, size;    /* the member's bytes */
    bool is_file;            /* a regular file; else a folder, a link, a device */
    char name[CVY_TAR_NAME]; /* NUL-terminated, without a leading "./" */
    /* what extended headers say of the member that follows them */
    bool has_name, has_size;
    int64_t next_size;
};

void cvy_tar_begin(struct cvy_tar *tar, const struct cvy_tar_source *source);

/* The next member. CVY_END after the last one. CVY_ERR_DATA: this is no tar archive, or it is cut off; the message
   says where, without the file's name. */
cvy_status cvy_tar_next(struct cvy_tar *tar);

#endif
