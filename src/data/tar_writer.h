/* Tar archives, written member by member (ustar); the same members make the same bytes. */
#ifndef CVY_DATA_TAR_WRITER_H
#define CVY_DATA_TAR_WRITER_H

#include "base/file.h"

struct cvy_tar_writer {
    struct cvy_writer file; /* cvy_writer_abandon when it shall not stay */
    int64_t n_bytes;
};
cvy_status cvy_tar_writer_begin(struct cvy_tar_writer *tar, const char *path);
/* name: less than 100 bytes. */
cvy_status cvy_tar_writer_add(struct cvy_tar_writer *tar, const char *name, const void *bytes,
                              size_t n_bytes);
/* The end marks; cvy_writer_commit makes the file. */
cvy_status cvy_tar_writer_end(struct cvy_tar_writer *tar);

#endif
