/* What lies in a folder of class folders: found by one walk, and kept in the cache folder, so that the next start looks
   only at the folders' times of change. */
#ifndef CVY_DATA_FOLDER_INDEX_H
#define CVY_DATA_FOLDER_INDEX_H

#include "base/status.h"
#include "data/others.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cvy_folder_stamp {
    int64_t mtime_ns, ctime_ns; /* ctime too: tools that copy set the other back */
    uint64_t n_files;
};

struct cvy_folder_index {
    uint64_t n_hidden_folders, n_hidden_images; /* see scan.h */
    struct cvy_others others;
    size_t
        n; /* folders: the root, then each class folder, by name, followed by all that lie in it, by path */
    const struct cvy_folder_stamp *folders;
    /* NUL-terminated pieces: for each folder its path below the root ("" for the root), then its files by name */
    const char *text;
    size_t n_text;
    char *bytes; /* owned; the pointers lead there */
    size_t n_bytes;
};

/* From the cache when no folder has changed, else by a walk, whose result is kept. The caller frees the index. */
cvy_status cvy_folder_index_open(const char *root, struct cvy_folder_index *out);
void cvy_folder_index_free(struct cvy_folder_index *index);

/* From the content of a cache file, which is `bytes`, 8-aligned; out->bytes is not set. False: it is broken. */
bool cvy_folder_index_parse(const char *bytes, size_t n_bytes, struct cvy_folder_index *out);

#endif
